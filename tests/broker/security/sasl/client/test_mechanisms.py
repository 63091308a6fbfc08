"""The mechanism between brokers, by the configuration."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.runtime.clock import SystemClock
from broker.security.oauth.client_message import parse_client_message
from broker.security.oauth.unsecured import UnsecuredValidator
from broker.security.sasl.client.mechanisms import client_mechanism
from broker.security.sasl.client.scram import ScramClient
from config.errors import ConfigError
from config.listeners.jaas import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE
from tests.broker.security.sasl.stated_config import stated

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.security.sasl.client.mechanism import ClientMechanism

PREFIX = "listener.name.internal."
LOGIN = 'required username="broker" password="hidden"'


async def on_thread(work: Callable[[], bytes]) -> bytes:
    return work()


def made(name: str, enabled: str, jaas: str) -> ClientMechanism:
    properties = {
        "sasl.mechanism.inter.broker.protocol": name,
        f"{PREFIX}sasl.enabled.mechanisms": enabled,
        f"{PREFIX}{name.lower()}.sasl.jaas.config": jaas,
    }
    return client_mechanism(stated(properties), "INTERNAL", {}, on_thread, SystemClock())


def test_plain_has_name_and_password_of_its_login_module() -> None:
    mechanism = made("PLAIN", "PLAIN", f"{PLAIN_MODULE} {LOGIN};")

    assert asyncio.run(mechanism.exchange().first()) == b"\0broker\0hidden"


def test_scram_may_log_in_with_a_delegation_token() -> None:
    for option, is_token in (("tokenauth=true", True), ("tokenauth=false", False), ("", False)):
        mechanism = made("SCRAM-SHA-512", "SCRAM-SHA-512", f"{SCRAM_MODULE} {LOGIN} {option};")
        assert isinstance(mechanism, ScramClient)
        assert ("tokenauth=true" in mechanism.extensions) == is_token


def test_oauthbearer_shows_a_token_of_its_login_module() -> None:
    login = f"{OAUTHBEARER_MODULE} required unsecuredLoginStringClaim_sub=broker;"
    mechanism = made("OAUTHBEARER", "OAUTHBEARER", login)
    shown = parse_client_message(asyncio.run(mechanism.exchange().first())).token
    found = UnsecuredValidator({}).validate(shown, SystemClock().now_ms())
    assert found.name == "broker"


@pytest.mark.parametrize(
    ("name", "enabled", "jaas", "why"),
    [
        ("PLAIN", "SCRAM-SHA-256", f"{PLAIN_MODULE} {LOGIN};", "must be included in"),
        ("CRAM-MD5", "CRAM-MD5", f"{PLAIN_MODULE} {LOGIN};", "CRAM-MD5 is none of"),
        ("PLAIN", "PLAIN", f'{PLAIN_MODULE} required password="hidden";', "no username for PLAIN"),
        ("PLAIN", "PLAIN", f"{PLAIN_MODULE} required username=x;", "no password for PLAIN"),
        ("PLAIN", "PLAIN", f"{SCRAM_MODULE} {LOGIN};", "no username for PLAIN"),
        ("OAUTHBEARER", "OAUTHBEARER", f"{OAUTHBEARER_MODULE} {LOGIN};", "Claim_sub is missing"),
    ],
)
def test_invalid_client_mechanisms_are_reported_without_secrets(
    name: str, enabled: str, jaas: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        made(name, enabled, jaas)

    assert "hidden" not in str(raised.value)
