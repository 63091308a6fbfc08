"""Cipher suites by the names that Java and RFC 8446 give them, for OpenSSL.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256   ECDHE-RSA-AES128-GCM-SHA256
    TLS_RSA_WITH_AES_256_CBC_SHA            AES256-SHA
    TLS_AES_256_GCM_SHA384                  the same: a suite of TLS 1.3

OpenSSL keeps those of TLS 1.3 apart, and Python 3.11 cannot choose among them: with one of them
named, all three are offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SUITES_OF_TLS_1_3 = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
_SPELLINGS = (
    ("SSL_", "TLS_"),
    ("3DES_EDE_CBC", "DES_CBC3"),
    ("AES_128", "AES128"),
    ("AES_256", "AES256"),
    ("8_CBC_SHA", "8_SHA"),
    ("6_CBC_SHA", "6_SHA"),
    ("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305"),
)


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2 or before."""
    name = suite
    for java, openssl in _SPELLINGS:
        name = name.replace(java, openssl)
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    parts = (cipher,) if exchange == "RSA" else (exchange, cipher)
    return "-".join(parts).replace("_", "-")


def has_tls_1_3(suites: Iterable[str]) -> bool:
    """Return whether a suite of TLS 1.3 is among them."""
    return any(suite in SUITES_OF_TLS_1_3 for suite in suites)


def before_tls_1_3(suites: Iterable[str]) -> tuple[str, ...]:
    """The others, under OpenSSL's names."""
    return tuple(openssl_name(suite) for suite in suites if suite not in SUITES_OF_TLS_1_3)
