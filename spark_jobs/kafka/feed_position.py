"""How far a topic holds the feed: read from the last record of each partition.

Each record carries the header `line`, the feed's name and the line's number. Since lines are
appended in order, the last one in a partition says that all earlier ones of that partition are
there too. The header `partitions` tells how many there were: in a topic that was grown, lines are
in other partitions than their keys say.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_HEADER = "line"
PARTITIONS_HEADER = "partitions"
REPLAYED_HEADER = "replayed"
GROUP = "spark_jobs-feed-position"
TIMEOUT_SECONDS = 15.0
ATTEMPTS = 10
RETRY_SECONDS = 0.3
NOTHING = -1
LOOK_BACK_FACTOR = 10
"""How much farther back each look for the last line goes than the one before."""

PASSING = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
"""What brokers say for a moment after a topic was made, or its leader changed."""


class Named(Protocol):
    """A stream of lines."""

    @property
    def name(self) -> str:
        """Tell streams apart: records of one name and line number are the same record."""


def line_header(feed: Named, number: int) -> bytes:
    """Return the value of the header of a line."""
    return f"{feed.name}/{number}".encode()


def last_lines(topic: str, partitions: int, feed: Named, settings: dict[str, Any]) -> list[int]:
    """Return for each partition the number of the last line in it, or -1.

    Raises `JobError` when the topic holds records of another feed or of somebody else, or was
    grown by partitions since the feed was produced.
    """
    consumer = Consumer(
        {
            **settings,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        headers = [_last_headers(consumer, topic, partition) for partition in range(partitions)]
    finally:
        consumer.close()
    return [NOTHING if each is None else _line(each, topic, partitions, feed) for each in headers]


def _last_headers(consumer: Consumer, topic: str, partition: int) -> dict[str, Any] | None:
    """Return those of the last record that was not replayed; None when there is none."""
    low, high = _bounds(consumer, TopicPartition(topic, partition, OFFSET_INVALID))
    begin, count = high, 1
    while begin > low:
        end, begin = begin, max(low, begin - count)
        found = [
            headers
            for headers in _headers(consumer, TopicPartition(topic, partition, begin), end)
            if REPLAYED_HEADER not in headers
        ]
        if found:
            return found[-1]
        count *= LOOK_BACK_FACTOR
    return None


def _headers(consumer: Consumer, where: TopicPartition, end: int) -> Iterator[dict[str, Any]]:
    """Read those of all records from a place to before an offset; some offsets have none."""
    consumer.assign([where])
    while True:
        message = consumer.poll(TIMEOUT_SECONDS)
        error = None if message is None else message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            return
        if message is None or error is not None:
            raise JobError(
                f"{where.topic}-{where.partition}: what stands at {where.offset} cannot be read "
                f"({error or 'no answer'})"
            )
        offset = message.offset()
        if offset is None or offset >= end:
            return
        yield dict(message.headers() or [])


def _line(headers: dict[str, Any], topic: str, partitions: int, feed: Named) -> int:
    header = bytes(headers.get(LINE_HEADER) or b"").decode(errors="replace")
    name, _, number = header.rpartition("/")
    if name != feed.name:
        raise JobError(
            f"topic '{topic}' holds records of another feed ({name or 'unknown'}): "
            "name another with --topic, or delete it"
        )
    before = int(headers.get(PARTITIONS_HEADER) or partitions)
    if before != partitions:
        raise JobError(
            f"topic '{topic}' was grown from {before} to {partitions} partitions, and lines would "
            "come into it twice: name another with --topic, or delete it"
        )
    return int(number)


def _bounds(consumer: Consumer, where: TopicPartition) -> tuple[int, int]:
    """Return the first and next offset; a partition just made may not have its leader yet."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            low, high = consumer.get_watermark_offsets(where, timeout=TIMEOUT_SECONDS)
        except KafkaException as error:
            if attempt == ATTEMPTS or error.args[0].code() not in PASSING:
                raise
            consumer.list_topics(where.topic, timeout=TIMEOUT_SECONDS)
            time.sleep(RETRY_SECONDS)
        else:
            return low, high
    raise AssertionError
