"""What a dead letter holds: the record as it is put back, and where.

Letters of the broker's retry topics have the header `dead-letter-source`; those of the Spark job
`retry` are JSON, and say in it where the record came from.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_jobs.kafka.feed_position import REPLAYED_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

SOURCE_HEADER = "source"
DEAD_SOURCE_HEADER = "dead-letter-source"
COUNTING_HEADERS = {
    "retry-attempt",
    "dead-letter-attempts",
    DEAD_SOURCE_HEADER,
    "dead-letter-time",
    REPLAYED_HEADER,
}
"""Those that a record has on account of the attempts it had before."""
_PLACE = re.compile(r"([a-zA-Z0-9._-]+)/([0-9]{1,10})/[0-9]+")


class NoDeadLetterError(Exception):
    """What a record lacks that a dead letter has, in words."""


class Replayed(NamedTuple):
    """What is put back, and where."""

    topic: str
    partition: int
    value: bytes | None
    headers: list[Any]


def replayed_of(letter: Message, source: bytes) -> Replayed:
    """Return what is put back of a letter from `source`. Raises NoDeadLetterError."""
    return _of_retry_topic(letter) or _of_job(letter, source)


def source_of(letter: Message) -> bytes:
    """Return what two copies of a letter have in common: where its record came from."""
    headers: dict[str, Any] = dict(letter.headers() or [])
    named = headers.get(DEAD_SOURCE_HEADER) or headers.get(SOURCE_HEADER)
    return bytes(named or f"{letter.partition()}/{offset_of(letter)}".encode())


def offset_of(message: Message) -> int:
    """Return the offset of a record that was read."""
    offset = message.offset()
    assert offset is not None
    return offset


def _of_retry_topic(letter: Message) -> Replayed | None:
    """Return what a letter of the broker was; None for others."""
    headers: list[Any] = list(letter.headers() or [])
    places = [value for name, value in headers if name == DEAD_SOURCE_HEADER]
    if not places:
        return None
    named = (places[-1] or b"").decode("utf-8", "replace")
    place = _PLACE.fullmatch(named)
    if place is None:
        text = f"its header {DEAD_SOURCE_HEADER} is {named!r}, which is no topic/partition/offset"
        raise NoDeadLetterError(text)
    own = [header for header in headers if header[0] not in COUNTING_HEADERS]
    return Replayed(place[1], int(place[2]), letter.value(), own)


def _of_job(letter: Message, source: bytes) -> Replayed:
    """Return the record that a letter of the job `retry` holds, which is JSON."""
    try:
        found = json.loads(letter.value() or b"")
        topic, partition = str(found["source"]["topic"]), int(found["source"]["partition"])
        return Replayed(topic, partition, _value(found), [("origin", source)])
    except (ValueError, KeyError, TypeError, AttributeError):
        text = f"it has no header {DEAD_SOURCE_HEADER}, and its value is not of the job `retry`"
        raise NoDeadLetterError(text) from None


def _value(letter: Mapping[str, Any]) -> bytes | None:
    """Return the value that the record had; raise NoDeadLetterError when a part was cut off."""
    size = letter["raw_bytes"]
    if size is None:
        return None
    if letter["raw_base64"] is not None:
        value = base64.b64decode(letter["raw_base64"])
    else:
        value = letter["raw"].encode()
    if len(value) != size:
        text = f"its value is {size:,} bytes long, of which the letter has {len(value):,}"
        raise NoDeadLetterError(text)
    return value
