"""Recognises clients of other protocols on a Kafka port by their first bytes.

A Kafka frame begins with its size in four bytes, so the first bytes of other protocols read as a
size far too large; the log says which protocol it was.
"""

from __future__ import annotations

TLS_HANDSHAKE = b"\x16\x03"
"""Record type and major version, of SSL 3 to TLS 1.3."""

HTTP_METHODS = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC")
HTTP_2_PREFACE = b"PRI "
SSH = b"SSH-"


def recognise(first: bytes) -> str | None:
    """The sender of these first four bytes, in words; None if it may be a Kafka client."""
    if first.startswith(TLS_HANDSHAKE):
        return (
            "the client speaks TLS, this listener does not "
            "(set security.protocol=PLAINTEXT, or SASL_PLAINTEXT with SASL)"
        )
    if first in HTTP_METHODS or first == HTTP_2_PREFACE:
        return "the client speaks HTTP, this is a Kafka listener"
    if first == SSH:
        return "the client speaks SSH, this is a Kafka listener"
    return None
