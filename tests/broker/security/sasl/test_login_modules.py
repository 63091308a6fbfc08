"""Precedence of the sources of a mechanism's login modules."""

from __future__ import annotations

import pytest

from broker.security.sasl.login_modules import login_modules
from config.errors import ConfigError
from config.listeners.jaas import PLAIN_MODULE, SCRAM_MODULE, LoginModule
from tests.broker.security.sasl.stated_config import stated

KEY = "listener.name.internal.plain.sasl.jaas.config"
OWN = [LoginModule(PLAIN_MODULE, {"user_x": "of the listener"})]
ALL = [
    LoginModule(SCRAM_MODULE, {"username": "s"}),
    LoginModule(PLAIN_MODULE, {"user_x": "of all", "username": "p"}),
    LoginModule(PLAIN_MODULE, {"user_x": "second"}),
]
FILE = {"internal.KafkaServer": OWN, "KafkaServer": ALL}


def found(properties: dict[str, str], sections: dict[str, list[LoginModule]]) -> dict[str, str]:
    config = stated(properties)
    return login_modules(config, "INTERNAL", "PLAIN", sections).options_of(PLAIN_MODULE)


def test_the_key_comes_before_the_file() -> None:
    assert found({KEY: f'{PLAIN_MODULE} required user_x="of the key";'}, FILE) == {
        "user_x": "of the key"
    }


def test_the_section_of_the_listener_comes_before_that_of_all() -> None:
    assert found({}, FILE) == {"user_x": "of the listener"}
    assert found({}, {"KafkaServer": ALL}) == {"user_x": "of all", "username": "p"}


def test_options_of_another_class_do_not_count() -> None:
    assert found({KEY: f'{SCRAM_MODULE} required user_x="x";'}, FILE) == {}


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({}, f"{KEY} is missing"),
        ({"sasl.jaas.config": f"{PLAIN_MODULE} required;"}, "is missing"),
        ({KEY.replace("plain.", ""): f"{PLAIN_MODULE} required;"}, "is missing"),
        ({KEY: f'{PLAIN_MODULE} required user_x="hidden"'}, "semi-colon"),
    ],
)
def test_a_missing_or_malformed_login_module_is_named_without_secrets(
    properties: dict[str, str], why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        found(properties, {"Client": ALL})

    assert KEY in raised.value.keys
    assert "hidden" not in str(raised.value)
