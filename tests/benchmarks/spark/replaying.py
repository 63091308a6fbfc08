"""Made-up events out of a file into a topic, at a steady rate.

    python -m tests.benchmarks.spark.replaying FILE BOOTSTRAP TOPIC RATE

To make an event costs several times what sending it does, and no website makes its events on the
machine that takes them in. So they are made before a run (`record`), and a process that costs
little replays them at a steady rate.
"""

from __future__ import annotations

import pickle
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, Message, Producer

from spark_jobs.kafka.line_producer import CLIENT_SETTINGS, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_jobs.visitors.visits import Site

CHUNK = 1000
FLUSH_SECONDS = 60.0
TICK_SECONDS = 0.02

Event = tuple[int, bytes, bytes | None, int]
"""Partition, key, value and timestamp in milliseconds."""


def record(site: Site, events: int, partitions: int, path: Path) -> None:
    """Write the first so many events of a site into a file."""
    lines = islice(site.lines(), events)
    with path.open("wb") as file:
        while chunk := [
            (partition_of(line.key, partitions), line.key, line.value, line.timestamp_ms)
            for line in islice(lines, CHUNK)
        ]:
            pickle.dump(chunk, file, pickle.HIGHEST_PROTOCOL)


def recorded(path: Path) -> Iterator[list[Event]]:
    """Yield the events of a file that `record` wrote, some at a time."""
    with path.open("rb") as file:
        while file.peek(1):
            yield pickle.load(file)


class _Replay:
    """Sends events; a refused one ends it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer(CLIENT_SETTINGS | {"bootstrap.servers": bootstrap})
        self._topic = topic
        self._sent = 0

    def run(self, path: Path, rate: float) -> None:
        """Send all events of a file, so many a second."""
        begin = time.monotonic()
        for chunk in recorded(path):
            for event in chunk:
                self._send(event)
            self._sent += len(chunk)
            self._producer.poll(0)
            while self._sent > (time.monotonic() - begin) * rate:
                self._producer.poll(TICK_SECONDS)
        self._producer.flush(FLUSH_SECONDS)

    def _send(self, event: Event) -> None:
        partition, key, value, timestamp = event
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=value,
                    key=key,
                    partition=partition,
                    on_delivery=_refuse_failure,
                    timestamp=timestamp,
                )
            except BufferError:  # the queue is full: let the broker catch up
                self._producer.poll(TICK_SECONDS)
            else:
                return


def _refuse_failure(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        raise RuntimeError(f"an event is not delivered: {error.str()}")


def main(arguments: list[str]) -> None:
    """Replay a file."""
    path, bootstrap, topic, rate = arguments
    _Replay(bootstrap, topic).run(Path(path), float(rate))


if __name__ == "__main__":
    main(sys.argv[1:])
