"""Rows of many records that wait: whoever begins at the oldest is to be as fast as at the newest.

The oldest have left the memory of the machine by then, and come from the disk.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from tests.benchmarks.measurement.canned_frames import (
    Canned,
    begin,
    error_at_of_produce,
    send,
)
from tests.benchmarks.measurement.performance_tools import PerformanceToolError
from tests.benchmarks.measurement.rows import FreshTopic, Result, Row

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

BATCH_BYTES = 16 * 1024
SEGMENT_BYTES = 100_000_000
"""A hundred million records of 100 B are a hundred segments and more."""
READ_SHARE = 100
"""One record of a hundred is read."""
AT_ONCE = 10_000
SILENCE_SECONDS = 30.0
MEGABYTE = 1_000_000


def waiting_row(where: str, records: int) -> Row:
    """Return a row that reads the `oldest` or the `newest` of the records of one partition."""

    def measure(broker: BrokerProcess, topic: str, count: int) -> Result:
        with FreshTopic(broker, topic, 1, {"segment.bytes": str(SEGMENT_BYTES)}):
            frames = begin(broker, topic, Canned(1, BATCH_BYTES))
            first, end = _ends(broker, topic)
            requests = max(1, (count - end) // (end - first))
            send(broker.port, requests, frames, error_at_of_produce(topic))
            first, end = _ends(broker, topic)
            wanted = max(1, (end - first) // READ_SHARE)
            start = first if where == "oldest" else end - wanted
            if where == "oldest":
                _forget(broker.data_directory / f"{topic}-0")
            before = broker.cpu_seconds()
            seconds, size = _read(broker, TopicPartition(topic, 0, start), wanted)
            cpu_seconds = broker.cpu_seconds() - before
        return Result(wanted / seconds, size / MEGABYTE / seconds, cpu_seconds)

    name = f"consume 100 B from the {where} of {records // 1_000_000} million that wait"
    return Row(name, "records/s", "≥ 1.0", measure, records)


def _forget(partition: Path) -> None:
    """Have the system drop a partition's records from its memory."""
    for path in partition.glob("*.log"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _ends(broker: BrokerProcess, topic: str) -> tuple[int, int]:
    consumer = _consumer(broker)
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), SILENCE_SECONDS)
    consumer.close()
    return first, end


def _read(broker: BrokerProcess, at: TopicPartition, wanted: int) -> tuple[float, int]:
    """Seconds from the first record to the last, and the size of their values."""
    consumer = _consumer(broker)
    consumer.assign([at])
    count = size = 0
    began = time.monotonic()
    while count < wanted:
        messages = consumer.consume(min(AT_ONCE, wanted - count), SILENCE_SECONDS)
        if not messages:
            raise PerformanceToolError(f"{count} of {wanted} records came")
        count += len(messages)
        size += sum(len(message.value() or b"") for message in messages)
    seconds = time.monotonic() - began
    consumer.close()
    return seconds, size


def _consumer(broker: BrokerProcess) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "waiting",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )


WAITING_ROWS: dict[str, Row] = {
    "waiting-oldest": waiting_row("oldest", 100_000_000),
    "waiting-newest": waiting_row("newest", 100_000_000),
}
"""By the name that `--rows` takes."""
