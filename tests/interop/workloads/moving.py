"""Clients that go on while brokers take each other's place: a writer, and a group."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer

from tests.interop.clients.reading import ConfluentReader, visible
from tests.interop.conftest import patiently

if TYPE_CHECKING:
    from tests.interop.clients.record import Settings

PARTITIONS = 4
RECORDS_AT_ONCE = 10
REST_SECONDS = 0.02
POLL_SECONDS = 0.2
MORE = 200
WAIT_SECONDS = 240.0


class Writer(threading.Thread):
    """An idempotent producer with acks=all that writes numbers, some hundred a second."""

    def __init__(self, bootstrap: str, topic: str, settings: Settings | None = None) -> None:
        super().__init__(name="writer")
        self.acknowledged: list[bytes] = []
        self.failures: list[str] = []
        self.sent = 0
        self._topic = topic
        self._is_asked_to_stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
                **(settings or {}),
            }
        )

    def run(self) -> None:
        while not self._is_asked_to_stop.wait(REST_SECONDS):
            for _ in range(RECORDS_AT_ONCE):
                value = b"%d" % self.sent
                partition = self.sent % PARTITIONS
                self._producer.produce(
                    self._topic, value, partition=partition, on_delivery=self._delivered
                )
                self.sent += 1
            self._producer.poll(0)
        if self._producer.flush(WAIT_SECONDS):
            self.failures.append("records are still not acknowledged")

    def finish(self) -> None:
        """Send no more, and wait until everything is acknowledged."""
        self._is_asked_to_stop.set()
        self.join()

    def _delivered(self, error: object, message: Any) -> None:
        if error is None:
            self.acknowledged.append(message.value())
        else:
            self.failures.append(str(error))


class Copier(threading.Thread):
    """The only member of a consumer group; it commits after each few records."""

    def __init__(self, bootstrap: str, topic: str, settings: Settings | None = None) -> None:
        super().__init__(name="copier")
        self.seen: list[bytes] = []
        self.member_ids: set[str] = set()
        self.failures: list[str] = []
        self._enough: int | None = None
        self._deadline = 0.0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "copiers",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 20_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
                **(settings or {}),
            }
        )
        self._consumer.subscribe([topic])

    def run(self) -> None:
        try:
            while not self._is_done():
                found = self._consumer.consume(100, POLL_SECONDS)
                values = [message.value() for message in found if message.error() is None]
                if values:
                    self.member_ids.add(self._consumer.memberid())
                    self.seen += (value for value in values if value is not None)
                    patiently(lambda: self._consumer.commit(asynchronous=False))
        except KafkaException as error:
            self.failures.append(str(error))
        finally:
            self._consumer.close()

    def wait_for_more(self) -> None:
        """Wait until it has read some more."""
        wanted = len(self.seen) + MORE
        deadline = time.monotonic() + WAIT_SECONDS
        while len(self.seen) < wanted:
            assert time.monotonic() < deadline, (len(self.seen), wanted, self.failures)
            time.sleep(REST_SECONDS)

    def finish(self, count: int) -> None:
        """Read on to so many records, for a limited time."""
        self._deadline = time.monotonic() + WAIT_SECONDS
        self._enough = count
        self.join()

    def _is_done(self) -> bool:
        if self._enough is None:
            return False
        return len(self.seen) >= self._enough or time.monotonic() > self._deadline


def values_in(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    """Return all values visible in a topic, sorted."""
    with closing(ConfluentReader(bootstrap, topic, "auditors", isolation)) as reader:
        return sorted(value for _, _, value in visible(reader))


def committed_by(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    """The offsets of a group, by partition."""
    with closing(ConfluentReader(bootstrap, topic, group)) as reader:
        return reader.committed()
