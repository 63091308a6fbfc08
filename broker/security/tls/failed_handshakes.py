"""Reasons of failed TLS handshakes, in words for operators of the broker or the client."""

from __future__ import annotations

import ssl
from typing import Final

TLS_HANDSHAKE: Final = b"\x16\x03"
"""Record type and major version, of SSL 3 to TLS 1.3."""
_HTTP: Final = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI", b"CONN", b"PRI ")

_REASONS: Final = {
    "NO_SHARED_CIPHER": "the client has no cipher suite in common (ssl.cipher.suites)",
    "UNSUPPORTED_PROTOCOL": "the client has no TLS version in common (ssl.enabled.protocols)",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no TLS version is in common (ssl.enabled.protocols)",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate, "
    "and ssl.client.auth=required",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust this broker's certificate "
    "(its ssl.truststore, or ssl.ca.location)",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not trust this broker's certificate, "
    "or that is for other host names",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer refuses this broker's certificate, "
    "perhaps for its host names",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer finds that this broker's certificate has expired",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the other broker wants a certificate "
    "(its ssl.client.auth=required), and ssl.keystore is not set here",
    "WRONG_VERSION_NUMBER": "the peer does not speak TLS",
}


def explain(error: Exception, first: bytes) -> str:
    """The reason, given the first four bytes of the peer, or none if it is known to speak TLS."""
    if first and not first.startswith(TLS_HANDSHAKE):
        if first in _HTTP:
            return "the client speaks HTTP, this is a Kafka listener with TLS"
        return (
            "the client does not speak TLS, this listener does "
            "(set security.protocol=SSL, or SASL_SSL with SASL)"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the peer's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason is not None:
        known = _REASONS.get(error.reason)
        return f"TLS: {known or error.reason.replace('_', ' ').lower()}"
    return f"TLS: {error}"
