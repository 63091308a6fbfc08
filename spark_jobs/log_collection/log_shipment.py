"""Lines on their way to the topic: a transaction at a time, with the positions they lead to."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from spark_jobs.log_collection.log_position_topic import (
    partition_of,
    positions_value,
    read_positions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from spark_jobs.jobs.collect_logs import CollectOptions
    from spark_jobs.log_collection.log_positions import Position
    from spark_jobs.log_collection.tail import Line, TailedLog

TIMEOUT_SECONDS = 15.0
COMMIT_ATTEMPTS = 20
"""Times `TIMEOUT_SECONDS`: how long a commit may take while the broker is away."""

ABORT_SECONDS = 5.0
FULL_QUEUE_SECONDS = 0.2

LINE_SETTINGS: dict[str, str] = {}
"""Of the topic of lines, when it is created: the broker's own retention."""

CLIENT_SETTINGS: dict[str, Any] = {
    "compression.type": "lz4",
    "linger.ms": 20,
    "queue.buffering.max.messages": 50_000,
    "queue.buffering.max.kbytes": 65_536,
    "transaction.timeout.ms": 60_000,
}


class Shipment:
    """A transactional producer in the collector's name, and what is in its transaction.

    Making one shuts out earlier ones of the name and ends what they left open. Any method may
    raise `KafkaException`: then nothing since the last commit counts, and another must be made.
    """

    def __init__(self, options: CollectOptions, settings: dict[str, Any], partitions: int) -> None:
        self._options = options
        self._partitions = partitions
        self._producer = Producer(
            {
                **CLIENT_SETTINGS,
                **settings,
                "transactional.id": f"spark_jobs-logs-{options.topic}-{options.name()}",
            }
        )
        self._producer.init_transactions(TIMEOUT_SECONDS)
        self._committed = read_positions(options.positions(), settings)
        self._is_open = False
        self._bytes = 0
        self._began = time.monotonic()
        self.lines = 0

    def key(self, log: Path) -> bytes:
        """Return what a log is called in both topics."""
        return f"{self._options.name()}:{log}".encode(errors="surrogateescape")

    def positions(self, log: Path) -> list[Position]:
        """Return how far a log was read with the last committed transaction."""
        return self._committed.get(self.key(log), [])

    def add(self, log: Path, line: Line) -> None:
        """Produce a line within the transaction, beginning one if need be."""
        headers: list[tuple[str, str | bytes | None]] = [
            ("file", bytes(line.path)),
            ("offset", str(line.offset)),
        ]
        if line.is_continued:
            headers.append(("continued", b""))
        key = self.key(log)
        self._produce(
            self._options.topic,
            key=key,
            value=line.value,
            partition=partition_of(key, self._partitions),
            headers=headers,
        )
        self.lines += 1
        self._bytes += len(line.value)

    def commit(self, logs: Mapping[Path, TailedLog]) -> int:
        """Commit what was added, with the positions of the logs as they are now.

        Returns the number of lines.
        """
        changed = {
            self.key(path): positions
            for path, log in logs.items()
            if (positions := log.positions()) != self._committed.get(self.key(path), [])
        }
        for key, positions in changed.items():
            self._produce(self._options.positions(), key=key, value=positions_value(positions))
        if not self._is_open:
            return 0
        self._end()
        self._committed |= changed
        lines, self.lines = self.lines, 0
        self._note(lines)
        return lines

    def close(self) -> None:
        """Give up what was added and not committed: the next of the name would anyway."""
        if self._is_open:
            self._producer.purge()
            with suppress(KafkaException):  # then it ends with its time, or with the next one
                self._producer.abort_transaction(ABORT_SECONDS)

    def _produce(self, topic: str, **record: Any) -> None:  # noqa: ANN401 - the client's arguments
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True
        while True:
            try:
                self._producer.produce(topic, **record)
            except BufferError:  # the queue is full: let the broker catch up
                self._producer.poll(FULL_QUEUE_SECONDS)
            else:
                self._producer.poll(0)
                return

    def _end(self) -> None:
        for attempt in range(1, COMMIT_ATTEMPTS + 1):
            try:
                self._producer.commit_transaction(TIMEOUT_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable() or attempt == COMMIT_ATTEMPTS:
                    raise
            else:
                self._is_open = False
                return

    def _note(self, lines: int) -> None:
        now = time.monotonic()
        seconds, self._began = now - self._began, now
        size, self._bytes = self._bytes, 0
        if self._options.metrics is not None:
            words = {
                "query": "collect_logs",
                "rows": lines,
                "bytes": size,
                "input_rows_per_second": round(lines / seconds, 1) if seconds else 0.0,
            }
            with self._options.metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps(words) + "\n")
