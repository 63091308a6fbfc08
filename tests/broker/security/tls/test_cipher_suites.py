"""Names of cipher suites, against those that OpenSSL itself knows."""

from __future__ import annotations

import subprocess

import pytest

from broker.security.tls.cipher_suites import (
    SUITES_OF_TLS_1_3,
    before_tls_1_3,
    has_tls_1_3,
    openssl_name,
)

OF_JAVA = ("RSA", "ECDHE_RSA", "ECDHE_ECDSA", "DHE_RSA")
"""Key exchanges of the suites that Java 17 enables."""


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("SSL_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA"),
    ],
)
def test_javas_names_become_openssls(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl


@pytest.mark.process
def test_openssl_gives_the_suites_of_java_these_names() -> None:
    listed = subprocess.run(
        ["openssl", "ciphers", "-stdname", "AES:CHACHA20"], check=True, capture_output=True
    )
    named = [line.split()[0:3:2] for line in listed.stdout.decode().splitlines()]
    compared = [
        (openssl_name(standard), openssl)
        for standard, openssl in named
        if standard.partition("_WITH_")[0].removeprefix("TLS_") in OF_JAVA
        and "CCM_8" not in standard
    ]
    assert len(compared) > 15
    assert [ours for ours, _ in compared] == [theirs for _, theirs in compared]


def test_suites_of_tls_1_3_are_kept_apart() -> None:
    mixed = (SUITES_OF_TLS_1_3[0], "TLS_RSA_WITH_AES_128_CBC_SHA")
    assert has_tls_1_3(mixed)
    assert before_tls_1_3(mixed) == ("AES128-SHA",)
    assert not has_tls_1_3(mixed[1:])
