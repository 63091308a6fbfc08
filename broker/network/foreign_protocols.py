"""Clients of other protocols that come to a Kafka port: recognised by how they begin.

Four bytes of a Kafka frame are its size, so what others send first reads as a size that is far too
large; whoever reads the log wants to know who it was.
"""

from __future__ import annotations

TLS_HANDSHAKE = b"\x16\x03"
"""Record type and major version, of SSL 3 to TLS 1.3."""

HTTP_METHODS = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC")
HTTP_2_PREFACE = b"PRI "
SSH = b"SSH-"


def recognise(first: bytes) -> str | None:
    """Say in words who sends these four bytes first; None if it may be a broken Kafka client."""
    if first.startswith(TLS_HANDSHAKE):
        return "the client speaks TLS, this listener does not (set security.protocol=PLAINTEXT)"
    if first in HTTP_METHODS or first == HTTP_2_PREFACE:
        return "the client speaks HTTP, this is a Kafka listener"
    if first == SSH:
        return "the client speaks SSH, this is a Kafka listener"
    return None
