"""How far a topic holds the feed: read from the last record of each partition.

Each record carries the header `line`, the feed's name and the line's number. Since lines are
appended in order, the last one in a partition says that all earlier ones of that partition are
there too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from spark_jobs.feed import Feed

LINE_HEADER = "line"
GROUP = "spark_jobs-feed-position"
TIMEOUT_SECONDS = 15.0
NOTHING = -1


def line_header(feed: Feed, number: int) -> bytes:
    """Return the value of the header of a line."""
    return f"{feed.name}/{number}".encode()


def last_lines(topic: str, partitions: int, feed: Feed, settings: dict[str, Any]) -> list[int]:
    """Return for each partition the number of the last line in it, or -1.

    Raises `JobError` when the topic holds records of another feed or of somebody else.
    """
    consumer = Consumer({**settings, "group.id": GROUP, "enable.auto.commit": False})
    try:
        return [_last_line(consumer, topic, partition, feed) for partition in range(partitions)]
    finally:
        consumer.close()


def _last_line(consumer: Consumer, topic: str, partition: int, feed: Feed) -> int:
    where = TopicPartition(topic, partition, OFFSET_INVALID)
    low, high = consumer.get_watermark_offsets(where, timeout=TIMEOUT_SECONDS)
    if low == high:
        return NOTHING
    consumer.assign([TopicPartition(topic, partition, high - 1)])
    message = consumer.poll(TIMEOUT_SECONDS)
    if message is None or message.error() is not None:
        raise JobError(f"{topic}-{partition}: its last record, {high - 1}, cannot be read")
    headers: dict[str, Any] = dict(message.headers() or [])
    header = bytes(headers.get(LINE_HEADER) or b"").decode(errors="replace")
    name, _, number = header.rpartition("/")
    if name != feed.name:
        raise JobError(
            f"topic '{topic}' holds records of another feed ({name or 'unknown'}): "
            "name another with --topic, or delete it"
        )
    return int(number)
