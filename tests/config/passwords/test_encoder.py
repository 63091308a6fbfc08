"""Passwords are kept as Apache Kafka's `EncryptingPasswordEncoder` keeps them."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.broker import BrokerConfig
from config.errors import ConfigError
from config.passwords.encoder import (
    CBC,
    CTR,
    GCM,
    PasswordEncoder,
    UndecodableError,
    configured_encoder,
    encode_passwords,
    is_password,
)

ENCODER = PasswordEncoder("of the cluster", os.urandom, iterations=1024)


@pytest.mark.parametrize("cipher", [CBC, CTR, GCM])
@pytest.mark.parametrize("key_bits", [128, 192, 256])
@given(st.text(st.characters(codec="utf-8"), max_size=40))
@settings(max_examples=10, deadline=None)
def test_every_password_survives_being_kept(cipher: str, key_bits: int, password: str) -> None:
    encoder = dataclasses.replace(ENCODER, cipher=cipher, key_bits=key_bits)
    stored = encoder.encode(password)
    assert ENCODER.decode(stored) == password, "what is stored says how it was made"
    assert encoder.encode(password) != stored


def test_an_encoded_password_has_apaches_fields() -> None:
    fields = dict(pair.split(":", 1) for pair in ENCODER.encode("żółw𝄞").split(","))
    assert fields.keys() == {
        "keyFactoryAlgorithm",
        "cipherAlgorithm",
        "keyLength",
        "salt",
        "iterations",
        "initializationVector",
        "encryptedPassword",
        "passwordLength",
    }
    assert fields["keyFactoryAlgorithm"] == "PBKDF2WithHmacSHA512"
    assert (fields["keyLength"], fields["passwordLength"]) == ("128", "6")


def spoiled(stored: str) -> list[str]:
    return [
        "",
        "sesame",
        stored.replace("keyLength:128", "keyLength:1"),
        stored.replace("iterations:1024", "iterations:99999999999"),
        stored.replace("PBKDF2WithHmacSHA512", "PBKDF2WithHmacMD5"),
        stored.replace(CBC, "DES/CBC/PKCS5Padding"),
        stored.replace("passwordLength:6", "passwordLength:7"),
        stored.replace("encryptedPassword:", "encryptedPassword:!"),
        stored.replace("salt:", "salz:"),
    ]


@pytest.mark.parametrize("number", range(len(spoiled(""))))
def test_a_malformed_password_is_refused_without_its_content(number: int) -> None:
    with pytest.raises(UndecodableError) as refusal:
        ENCODER.decode(spoiled(ENCODER.encode("sesame"))[number])
    assert "sesame" not in str(refusal.value)


@pytest.mark.parametrize("cipher", [CBC, GCM])
def test_another_secret_decodes_nothing(cipher: str) -> None:
    encoder = dataclasses.replace(ENCODER, cipher=cipher)
    other = dataclasses.replace(encoder, secret="another")
    for _ in range(20):
        with pytest.raises(UndecodableError):
            other.decode(encoder.encode("sesame"))


def test_the_secret_is_not_shown() -> None:
    assert "cluster" not in repr(ENCODER)


@pytest.mark.parametrize(
    "keys",
    [
        {"password_encoder_keyfactory_algorithm": "PBKDF2WithHmacMD5"},
        {"password_encoder_cipher_algorithm": "DES/CBC/PKCS5Padding"},
        {"password_encoder_key_length": 64},
        {"password_encoder_iterations": 1_000_000_000},
    ],
)
def test_invalid_encoder_settings_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Invalid value"):
        configured_encoder(BrokerConfig(password_encoder_secret="x", **keys), os.urandom)


def test_passwords_are_kept_encrypted_and_the_rest_as_it_is() -> None:
    given_ = {"listener.name.x.ssl.key.password": "sesame", "log.cleaner.threads": "2"}
    stored = encode_passwords(given_, ENCODER)
    assert stored["log.cleaner.threads"] == "2"
    assert ENCODER.decode(stored["listener.name.x.ssl.key.password"]) == "sesame"
    assert encode_passwords({"log.cleaner.threads": "2"}, None) == {"log.cleaner.threads": "2"}
    assert configured_encoder(BrokerConfig(), os.urandom) is None
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):
        encode_passwords(given_, None)


def test_passwords_are_known_by_their_keys_of_any_listener() -> None:
    names = ("listener.name.x.plain.sasl.jaas.config", "ssl.keystore.location", "ssl.keystore.key")
    assert [is_password(name) for name in names] == [True, False, True]
