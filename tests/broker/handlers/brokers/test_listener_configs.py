"""Settings of one listener change while the broker runs, once they were tried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers.brokers.config_resources import BROKER
from config.errors import ConfigError
from config.listeners.listener_config import for_listener
from config.precedence import Source
from protocol.errors import ErrorCode
from tests.broker.handlers.brokers.test_configs import DELETE, SET, description, increments
from tests.broker.handlers.one_broker import OneBroker, run_broker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from config.broker import BrokerConfig

PREFIX = "listener.name.plaintext."
LOCATION, PASSWORD = f"{PREFIX}ssl.keystore.location", f"{PREFIX}ssl.keystore.password"
JAAS = "listener.name.internal.plain.sasl.jaas.config"
OTHER = f"{PREFIX}my.plugin"
ENCODER = {"password_encoder_secret": "of the cluster", "password_encoder_iterations": 1024}


async def alter(broker: OneBroker, name: str, *changes: tuple[str, int, str | None]) -> Any:
    response = await broker.ask(increments(name, *changes, kind=BROKER), 1)
    return response.responses[0]


async def described(broker: OneBroker, name: str = "0") -> Mapping[str, Any]:
    response = await broker.ask(description(BROKER, name, include_synonyms=True), 4)
    return {config.name: config for config in response.results[0].configs}


def test_a_listeners_setting_holds_for_it_alone_at_once_and_after_a_restart(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        changes = ((LOCATION, SET, "/new.p12"), (PASSWORD, SET, "sesame"))
        assert (await alter(broker, "0", *changes)).error_code == ErrorCode.NONE
        listener = for_listener(broker.config, "PLAINTEXT")
        assert listener.ssl_keystore_location == "/new.p12"
        assert listener.ssl_keystore_password == "sesame"
        assert for_listener(broker.config, "OTHER").ssl_keystore_location == "/old.p12"

        stored = (await broker.store.get("/config/brokers/0")).data
        assert stored is not None
        assert b"encryptedPassword:" in stored
        assert b"sesame" not in stored
        await broker.broker_configs.load(broker.store)
        restarted = for_listener(broker.broker_configs.current, "PLAINTEXT")
        assert restarted.ssl_keystore_password == "sesame"

    run_broker(tmp_path, scenario, ssl_keystore_location="/old.p12", **ENCODER)


def test_a_listeners_settings_are_described_with_those_of_all_listeners(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await alter(broker, "0", (LOCATION, SET, "/new.p12"), (PASSWORD, SET, "sesame"))
        configs = await described(broker)
        location, password = configs[LOCATION], configs[PASSWORD]
        assert (location.value, location.read_only, location.is_sensitive) == (
            "/new.p12",
            True,
            False,
        )
        assert [(s.name, s.value, s.source) for s in location.synonyms] == [
            (LOCATION, "/new.p12", Source.DYNAMIC_BROKER),
            ("ssl.keystore.location", "/old.p12", Source.STATIC_BROKER),
        ]
        assert (password.value, password.is_sensitive) == (None, True)
        assert [s.value for s in password.synonyms] == [None]
        assert location.documentation is None

    keys = {**ENCODER, "stated": {"ssl.keystore.location": "/old.p12"}}
    run_broker(tmp_path, scenario, **keys)


@pytest.mark.parametrize(
    ("broker_name", "name", "text"),
    [
        ("0", "ssl.keystore.location", "only per-listener using the listener prefix"),
        ("", LOCATION, "at default cluster level, broker id must be specified"),
        ("0", f"{PREFIX}ssl.client.auth", "String must be one of: required, requested, none"),
        ("0", f"{PREFIX}max.connections", "no max.connections of its own"),
        ("0", "ssl.principal.mapping.rules", "Cannot update these configs dynamically"),
        ("0", "listeners", "a listener is written NAME://host:port"),
    ],
)
def test_invalid_listener_configs_are_refused(
    tmp_path: Path, broker_name: str, name: str, text: str
) -> None:
    async def scenario(broker: OneBroker) -> None:
        value = "5" if name.endswith("max.connections") else "perhaps"
        refusal = await alter(broker, broker_name, (name, SET, value))
        assert refusal.error_code == ErrorCode.INVALID_REQUEST
        assert text in refusal.error_message

    run_broker(tmp_path, scenario, **ENCODER)


def test_listener_configs_that_need_a_restart_are_accepted(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        open_ = f"{PREFIX}plain.sasl.jaas.config"
        changes = (
            (JAAS, SET, "a required;"),
            (open_, SET, "b required;"),
            (f"{PREFIX}x.y", SET, "z"),
        )
        assert (await alter(broker, "0", *changes)).error_code == ErrorCode.NONE
        assert for_listener(broker.config, "INTERNAL", "PLAIN").sasl_jaas_config is not None

    run_broker(tmp_path, scenario, **ENCODER)


def test_without_a_secret_passwords_are_refused(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        refusal = await alter(broker, "0", (PASSWORD, SET, "sesame"))
        assert refusal.error_code == ErrorCode.INVALID_CONFIG
        assert refusal.error_message == "Password encoder secret not configured"

    run_broker(tmp_path, scenario)


def test_a_listener_config_whose_check_fails_is_not_stored(tmp_path: Path) -> None:
    tried: list[str | None] = []

    async def check(config: BrokerConfig) -> None:
        location = for_listener(config, "PLAINTEXT").ssl_keystore_location
        tried.append(location)
        if location != "/good.p12":
            raise ConfigError(f"ssl.keystore.location: {location}: no such file")

    async def scenario(broker: OneBroker) -> None:
        broker.broker_configs.on_check(check)
        good = await alter(broker, "0", (LOCATION, SET, "/good.p12"))
        bad = await alter(broker, "0", (LOCATION, SET, "/bad.p12"))
        assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_REQUEST)
        assert "/bad.p12: no such file" in bad.error_message
        assert (await described(broker))[LOCATION].value == "/good.p12"
        gone = await alter(broker, "0", (LOCATION, DELETE, None))
        assert gone.error_code == ErrorCode.INVALID_REQUEST
        assert tried == ["/good.p12", "/bad.p12", None]
        await alter(broker, "", ("log.cleaner.backoff.ms", SET, "5"))
        assert len(tried) == 3, "no setting of a listener, nothing to try"

    run_broker(tmp_path, scenario)


def test_passwords_are_reencrypted_with_a_new_encoder_secret(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await alter(broker, "0", (PASSWORD, SET, "sesame"))
        stored = (await broker.store.get("/config/brokers/0")).data
        assert stored is not None
        kept.append(stored)

    async def with_new_secret(broker: OneBroker) -> None:
        await broker.store.create("/config/brokers/0", kept[0])
        await broker.broker_configs.load(broker.store)
        current = for_listener(broker.broker_configs.current, "PLAINTEXT")
        assert current.ssl_keystore_password == "sesame"
        assert (await broker.store.get("/config/brokers/0")).data != kept[0]

    kept: list[bytes] = []
    run_broker(tmp_path / "old", scenario, **ENCODER)
    new = {"password_encoder_secret": "new", "password_encoder_old_secret": "of the cluster"}
    run_broker(tmp_path / "new", with_new_secret, **{**ENCODER, **new})
