"""Contexts: versions, cipher suites, and settings that no context can be made of."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest

from broker.security.tls.contexts import (
    client_context,
    refuse_unless_they_agree,
    server_context,
)
from broker.security.tls.stores import read_identity
from config.errors import ConfigError
from tests.broker.security.tls.tls_keys import config_of
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
OLDER = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    authority = Authority()
    issued = authority.issue("broker", tmp_path)
    return issued.as_keystore("PEM") | authority.as_truststore(tmp_path, "PEM")


def made(keys: dict[str, str], **more: Any) -> ssl.SSLContext:
    config = config_of(keys, **more)
    return server_context(config, read_identity(config), "none")


@pytest.mark.parametrize(
    ("more", "versions"),
    [
        ({}, (V12, V13)),
        ({"ssl_enabled_protocols": ("TLSv1.3",)}, (V13, V13)),
        ({"ssl_enabled_protocols": (), "ssl_protocol": "TLSv1.2"}, (V12, V12)),
        ({"ssl_cipher_suites": (OLDER,)}, (V12, V12)),
        ({"ssl_cipher_suites": ("TLS_AES_128_GCM_SHA256",)}, (V13, V13)),
        ({"ssl_cipher_suites": ("TLS_AES_128_GCM_SHA256", OLDER)}, (V12, V13)),
    ],
)
def test_versions_are_those_enabled_for_which_there_are_suites(
    keys: dict[str, str], more: dict[str, Any], versions: tuple[object, object]
) -> None:
    context = made(keys, **more)
    assert (context.minimum_version, context.maximum_version) == versions


def test_cipher_suites_are_those_named(keys: dict[str, str]) -> None:
    context = made(keys, ssl_cipher_suites=(OLDER,))
    older = [one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-ECDSA-AES128-GCM-SHA256"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"ssl_enabled_protocols": ("SSLv3",)}, "SSLv3 is none of TLSv1, "),
        ({"ssl_enabled_protocols": ("TLSv1.1", "TLSv1.3")}, "cannot be left out"),
        ({"ssl_cipher_suites": ("TLS_NO_SUCH",)}, "OpenSSL has none of them"),
        ({"ssl_cipher_suites": (OLDER, "TLS_NO_SUCH")}, "OpenSSL has no NO-SUCH"),
        (
            {"ssl_cipher_suites": (OLDER,), "ssl_enabled_protocols": ("TLSv1.3",)},
            "no suite of ssl.cipher.suites is for one of these versions",
        ),
    ],
)
def test_tls_settings_unknown_to_openssl_are_refused(
    keys: dict[str, str], more: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        made(keys, **more)


def test_a_key_of_another_certificate_is_refused(keys: dict[str, str], tmp_path: Path) -> None:
    authority = Authority()
    one, other = authority.issue("one", tmp_path), authority.issue("other", tmp_path)
    mixed = tmp_path / "mixed.pem"
    mixed.write_text(one.key_pem() + other.chain_pem())
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(mixed)}

    with pytest.raises(ConfigError, match="the key store cannot be used: key values mismatch"):
        made(keys)


@pytest.mark.parametrize(
    ("algorithm", "is_checked"), [("https", True), ("HTTPS", True), ("", False)]
)
def test_ssl_endpoint_identification_algorithm_enables_host_name_checks(
    keys: dict[str, str], algorithm: str, is_checked: bool
) -> None:
    config = config_of(keys, ssl_endpoint_identification_algorithm=algorithm)
    context = client_context(config, None)
    assert context.check_hostname is is_checked
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_an_unknown_endpoint_identification_algorithm_is_refused(keys: dict[str, str]) -> None:
    config = config_of(keys, ssl_endpoint_identification_algorithm="LDAPS")
    with pytest.raises(ConfigError, match=r"ssl\.endpoint\.identification\.algorithm"):
        client_context(config, None)


@pytest.mark.parametrize("auth", ["none", "required"])
def test_brokers_with_the_same_stores_agree(keys: dict[str, str], auth: str) -> None:
    config = config_of(keys)
    identity = read_identity(config)
    client = client_context(config, identity)
    refuse_unless_they_agree(server_context(config, identity, auth), client)
    assert client.check_hostname


@pytest.mark.parametrize("auth", ["none", "required"])
def test_brokers_that_do_not_trust_each_other_are_found(
    keys: dict[str, str], tmp_path: Path, auth: str
) -> None:
    config = config_of(keys)
    other = Authority("Somebody Else").issue("other", tmp_path)
    mixed = config_of(keys | other.as_keystore("PEM"))
    trusted, foreign = read_identity(config), read_identity(mixed)

    with pytest.raises(ssl.SSLError):
        refuse_unless_they_agree(
            server_context(mixed, foreign, auth), client_context(config, trusted)
        )
    if auth == "required":
        with pytest.raises(ssl.SSLError):
            refuse_unless_they_agree(
                server_context(config, trusted, auth), client_context(config, foreign)
            )
