"""Dynamic settings on their way to the store and back."""

from __future__ import annotations

import os
from typing import Any

import pytest

from config.broker import BrokerConfig
from config.errors import ConfigError
from config.passwords.providers import read_providers
from config.passwords.stored_settings import StoredSettings, needs_a_thread, stored_settings_of

PASSWORD = "listener.name.external.ssl.key.password"
PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": ("org.apache.kafka.common.config.provider.EnvVarConfigProvider"),
}


def settings_of(**keys: Any) -> StoredSettings:
    providers = read_providers(PROVIDER, {"WORD": "sesame"})
    config = BrokerConfig(providers=providers, password_encoder_iterations=1024, **keys)
    return stored_settings_of(config, os.urandom)


KEPT = settings_of(password_encoder_secret="new")


def test_a_password_is_encrypted_and_a_variable_in_it_looked_up_when_it_is_read() -> None:
    stored = KEPT.storable({PASSWORD: "${env:WORD}", "log.cleaner.threads": "2"})
    assert "WORD" not in stored[PASSWORD]
    assert KEPT.readable(stored) == ({PASSWORD: "sesame", "log.cleaner.threads": "2"}, [])
    assert KEPT.resolved({PASSWORD: "${env:WORD}"}) == {PASSWORD: "sesame"}


@pytest.mark.parametrize("reader", [settings_of(), settings_of(password_encoder_secret="other")])
def test_an_undecryptable_password_is_ignored_and_reported(reader: StoredSettings) -> None:
    stored = KEPT.storable({PASSWORD: "sesame", "log.cleaner.threads": "2"})
    settings, problems = reader.readable(stored)
    assert settings == {"log.cleaner.threads": "2"}
    assert [problem.keys for problem in problems] == [(PASSWORD,)]
    assert "sesame" not in str(problems[0])


def test_without_a_secret_no_password_is_stored() -> None:
    with pytest.raises(ConfigError, match="secret not configured"):
        settings_of().storable({PASSWORD: "sesame"})


def test_passwords_of_the_old_secret_are_reencrypted() -> None:
    both = settings_of(password_encoder_secret="newest", password_encoder_old_secret="new")
    stored = {
        **KEPT.storable({PASSWORD: "sesame"}),
        **both.storable({"listener.name.x.sasl.jaas.config": "newer"}),
        "log.cleaner.threads": "2",
    }
    renewed = both.kept_with_old_secret(stored)
    assert list(renewed) == [PASSWORD]
    assert both.readable(renewed) == ({PASSWORD: "sesame"}, [])
    assert KEPT.kept_with_old_secret(stored) == {}


def test_only_passwords_and_variables_take_time() -> None:
    assert not needs_a_thread({"log.cleaner.threads": "2"})
    assert needs_a_thread({PASSWORD: ""})
    assert needs_a_thread({"log.cleaner.threads": "${env:WORD}"})
