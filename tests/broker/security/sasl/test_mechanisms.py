"""The mechanisms of a listener, by its configuration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from broker.security.sasl.credentials import Credentials
from broker.security.sasl.mechanism import RefusedError
from broker.security.sasl.mechanisms import Surroundings, terms_of
from broker.security.sasl.plain import PlainMechanism
from config.errors import ConfigError
from config.listeners.jaas import PLAIN_MODULE, SCRAM_MODULE
from tests.broker.security.sasl.sasl_frames import SettableClock
from tests.broker.security.sasl.stated_config import stated

if TYPE_CHECKING:
    from broker.security.sasl.conversation import Terms

PREFIX = "listener.name.internal."
PLAIN = f'{PLAIN_MODULE} required user_alice="alice-secret";'
SCRAM = f"{SCRAM_MODULE} required;"


def terms(properties: dict[str, str]) -> Terms:
    clock = SettableClock()
    around = Surroundings(clock, None, Credentials(), None, ThreadPoolExecutor)  # type: ignore[arg-type]
    return terms_of(stated(properties), "INTERNAL", around)


def test_each_listener_has_its_own() -> None:
    made = terms(
        {
            "sasl.enabled.mechanisms": "GSSAPI",
            f"{PREFIX}sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,SCRAM-SHA-512",
            f"{PREFIX}plain.sasl.jaas.config": PLAIN,
            f"{PREFIX}scram-sha-512.sasl.jaas.config": SCRAM,
            "connections.max.reauth.ms": "1000",
            f"{PREFIX}plain.connections.max.reauth.ms": "2000",
        }
    )

    assert list(made.mechanisms) == ["SCRAM-SHA-512", "PLAIN"]
    assert made.max_reauth_ms == {"SCRAM-SHA-512": 1000, "PLAIN": 2000}


def test_passwords_of_plain_stand_in_its_own_login_module() -> None:
    made = terms(
        {
            "sasl.enabled.mechanisms": "PLAIN",
            f"{PREFIX}plain.sasl.jaas.config": f'{SCRAM_MODULE} required user_alice="x";',
        }
    )
    plain = made.mechanisms["PLAIN"]

    assert isinstance(plain, PlainMechanism)
    with pytest.raises(RefusedError):
        plain.respond(b"\0alice\0x")


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({}, "gssapi.sasl.jaas.config is missing"),
        ({"sasl.enabled.mechanisms": "CRAM-MD5"}, "CRAM-MD5"),
        ({"sasl.enabled.mechanisms": ""}, "No SASL mechanisms are enabled for listener INTERNAL"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "plain.sasl.jaas.config is missing"),
    ],
)
def test_invalid_sasl_mechanisms_are_refused(properties: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        terms(properties)
