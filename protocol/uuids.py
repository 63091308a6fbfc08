"""Kafka's UUIDs: 16 raw bytes on the wire, 22 characters of url-safe base64 in files and znodes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

ZERO_UUID = UUID(int=0)
"""Stands for "no id" on the wire."""

METADATA_TOPIC_UUID = UUID(int=1)
"""Reserved by Kafka for its metadata log; never given to a topic."""

UUID_BYTES = 16

_RESERVED = 100
"""Ids below this are no directory's: 0 to 2 have meanings (KIP-858), the others may get some."""


def to_base64(value: UUID) -> str:
    """Text form in `partition.metadata`, `meta.properties` and znodes: 22 characters, unpadded."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def from_base64(text: str) -> UUID:
    """Inverse of `to_base64`; raises ValueError that quotes the text."""
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise ValueError(f"not a base64 UUID: {text!r}") from error
    if len(raw) != UUID_BYTES:
        raise ValueError(f"not a base64 UUID of {UUID_BYTES} bytes: {text!r}")
    return UUID(bytes=raw)


def from_random_bytes(raw: bytes) -> UUID:
    """A version 4 UUID out of 16 random bytes; the caller draws again until `is_usable`."""
    return UUID(bytes=raw, version=4)


def is_usable(value: UUID) -> bool:
    """Return whether a topic may have this id: not reserved, no leading dash (`randomUuid`)."""
    return value not in (ZERO_UUID, METADATA_TOPIC_UUID) and not to_base64(value).startswith("-")


def draw_uuid(random_bytes: Callable[[int], bytes]) -> UUID:
    """A random UUID for a topic, a cluster or a directory."""
    while not is_usable(drawn := from_random_bytes(random_bytes(UUID_BYTES))):
        pass
    return drawn


def is_reserved(value: UUID) -> bool:
    """Return whether no log directory may have this id (`DirectoryId.reserved`)."""
    return value.int < _RESERVED
