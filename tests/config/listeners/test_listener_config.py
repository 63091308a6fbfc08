"""The configuration of one listener, and of one mechanism there."""

from __future__ import annotations

import pytest

from config.broker import BrokerConfig
from config.errors import ConfigError
from config.listeners.listener_config import for_listener

STATED = {
    "ssl.keystore.location": "/keys/all.p12",
    "listener.name.external.ssl.keystore.location": "/keys/external.p12",
    "listener.name.external.sasl.jaas.config": "of the listener",
    "listener.name.external.scram-sha-256.sasl.jaas.config": "of SCRAM there",
    "listener.name.external.plain.connections.max.reauth.ms": "1000",
}
CONFIG = BrokerConfig(
    ssl_keystore_location="/keys/all.p12", sasl_jaas_config="of all", stated=STATED
)


def test_a_listener_has_its_own_value_of_a_key() -> None:
    assert for_listener(CONFIG, "EXTERNAL").ssl_keystore_location == "/keys/external.p12"


def test_another_listener_has_that_of_the_broker() -> None:
    assert for_listener(CONFIG, "INTERNAL") is CONFIG


def test_a_mechanism_goes_before_its_listener() -> None:
    assert for_listener(CONFIG, "EXTERNAL").sasl_jaas_config == "of the listener"
    with_scram = for_listener(CONFIG, "EXTERNAL", "SCRAM-SHA-256")
    assert with_scram.sasl_jaas_config == "of SCRAM there"
    assert with_scram.ssl_keystore_location == "/keys/external.p12"


def test_a_mechanism_leaves_the_listener_alone() -> None:
    assert for_listener(CONFIG, "EXTERNAL").connections_max_reauth_ms == 0
    assert for_listener(CONFIG, "EXTERNAL", "PLAIN").connections_max_reauth_ms == 1000


def test_a_malformed_value_is_named_with_its_listener() -> None:
    key = "listener.name.external.ssl.client.auth"
    config = BrokerConfig(stated={key: "perhaps"})
    with pytest.raises(ConfigError, match=key):
        for_listener(config, "EXTERNAL")
