"""Records as produced and as consumed, independent of any client's types."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = (0, 1, -1)
STYLES = ("fire-and-forget", "sync", "callback")
BASE_TIMESTAMP_MS = int(time.time()) * 1000 - 3_600_000  # noqa: TID251
"""An hour ago: records must be younger than their topic's retention."""

Settings = dict[str, Any]
"""Further client settings under the client's own keys, above all those for security."""


class Record(NamedTuple):
    """A record; as read it has an offset, as sent it has -1."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = BASE_TIMESTAMP_MS
    headers: tuple[tuple[str, bytes], ...] = ()
    offset: int = -1

    def without_offset(self) -> Record:
        """Return the record as it was sent."""
        return self._replace(offset=-1)


class Placed(NamedTuple):
    """Partition and offset reported by the broker for a produced record."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Sending:
    """Settings of a producer."""

    acks: int = -1
    codec: str = "none"
    style: str = "sync"
    is_idempotent: bool = False


def numbered_records(count: int, partition: int = 0, size: int = 20) -> list[Record]:
    """Return records that differ in key, value, time and header, and compress well."""
    return [
        Record(
            partition=partition,
            key=f"key-{number}".encode(),
            value=f"value-{partition}-{number}-".encode() + b"x" * size,
            timestamp_ms=BASE_TIMESTAMP_MS + number,
            headers=(("number", str(number).encode()), ("empty", b"")),
        )
        for number in range(count)
    ]
