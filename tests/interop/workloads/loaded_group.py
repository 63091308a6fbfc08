"""A group of librdkafka's consumers at work while its broker is killed, and what must hold of it.

A producer sends without a pause; members commit what they have read, and wait for the answer.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.interop.conftest import eventually, patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

PARTITIONS = 6
PAUSE_SECONDS = 0.01
RECORDS_AT_ONCE = 12
CALL_SECONDS = 30.0
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 200}
OF_PROTOCOL: dict[str, dict[str, Any]] = {
    "classic": {"session.timeout.ms": 3_000, "heartbeat.interval.ms": 200},
    "consumer": {},
}

SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.assignment.interval.ms": "100",
    "offsets.topic.num.partitions": "3",
}
"""Settings of the broker that detect dead members soon."""


class Ledger:
    """Records delivered to the members of a group, and their accepted commits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen: dict[int, set[int]] = defaultdict(set)
        self.accepted: dict[int, int] = defaultdict(int)
        self.broken: list[str] = []

    def count(self) -> int:
        """Return the number of distinct records delivered."""
        with self.lock:
            return sum(map(len, self.seen.values()))


class LoadedMember(threading.Thread):
    """Reads and commits until it leaves."""

    def __init__(self, group: LoadedGroup, protocol: str, pattern: str = "") -> None:
        super().__init__(name=f"{protocol} member", daemon=True)
        self.owned: set[int] = set()
        self._ledger = group.ledger
        self._floors: dict[int, int] = {}
        """Offsets already committed for each partition when it was assigned."""
        self._is_leaving = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": group.bootstrap,
                "group.id": group.name,
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **OF_PROTOCOL[protocol],
                **QUIET,
            }
        )
        self._consumer.subscribe(
            [pattern or group.name],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )
        self.start()

    def run(self) -> None:
        with closing(self._consumer):
            while not self._is_leaving.is_set():
                read = [one for one in self._consumer.consume(100, 0.1) if not one.error()]
                if read:
                    self._note(read)
                    self._commit(read)

    def leave(self) -> None:
        """Leave the group, and wait for that."""
        self._is_leaving.set()
        self.join(CALL_SECONDS)
        assert not self.is_alive(), f"{self.name} does not end"

    def _note(self, read: list[Message]) -> None:
        with self._ledger.lock:
            for one in read:
                partition, offset = _known(one.partition()), _known(one.offset())
                if offset < self._floors.get(partition, 0):
                    self._ledger.broken.append(f"{partition}:{offset} comes after its commit")
                self._ledger.seen[partition].add(offset)

    def _commit(self, read: list[Message]) -> None:
        """Commit once; what was refused comes with the next, or to the next owner."""
        ends: dict[int, int] = {}
        for one in read:
            ends[_known(one.partition())] = _known(one.offset()) + 1
        topic = str(read[0].topic())
        wanted = [TopicPartition(topic, partition, end) for partition, end in ends.items()]
        try:
            answered = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException:
            return
        with self._ledger.lock:
            for each in answered or ():
                if each.error is None:
                    accepted = self._ledger.accepted
                    accepted[each.partition] = max(accepted[each.partition], each.offset)

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        with self._ledger.lock:
            for each in partitions:
                self.owned.add(each.partition)
                self._floors[each.partition] = self._ledger.accepted[each.partition]

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned -= {each.partition for each in partitions}


class LoadedGroup:
    """A topic, what is sent there, and the members who read it."""

    def __init__(self, bootstrap: str, name: str) -> None:
        """The topic, of `PARTITIONS`, is there and has the group's name."""
        self.bootstrap, self.name = bootstrap, name
        self.ledger = Ledger()
        self.members: list[LoadedMember] = []
        self._is_over = threading.Event()
        self._sender = threading.Thread(target=self._send, name="sender", daemon=True)
        self._sent: dict[int, int] = defaultdict(int)
        self._sender.start()

    def join(self, protocol: str, pattern: str = "") -> LoadedMember:
        """Add a member."""
        self.members.append(LoadedMember(self, protocol, pattern))
        return self.members[-1]

    def leave(self, member: LoadedMember) -> None:
        """Remove a member."""
        self.members.remove(member)
        member.leave()

    def read_more(self, count: int) -> None:
        """Wait until so many more records were read."""
        before = self.ledger.count()
        eventually(lambda: self.ledger.count() >= before + count)

    def settle(self) -> None:
        """Wait until all partitions are owned, each by one member, and every member has one."""

        def is_settled() -> bool:
            owned = [set(member.owned) for member in self.members]
            return all(owned) and sorted(p for each in owned for p in each) == _ALL

        eventually(is_settled)

    def check(self) -> None:
        """Read and commit everything; check that nothing was lost or delivered after its commit."""
        self._is_over.set()
        self._sender.join(CALL_SECONDS)
        assert not self._sender.is_alive(), "the producer does not end"
        everything = {partition: set(range(count)) for partition, count in self._sent.items()}
        _wait(lambda: self.ledger.seen == everything, self._missing)
        _wait(lambda: self._committed() == dict(self._sent), self._committed)
        assert self.ledger.broken == []

    def close(self) -> None:
        """End all threads, however the test ends."""
        self._is_over.set()
        for member in self.members:
            member._is_leaving.set()
        for thread in (*self.members, self._sender):
            thread.join(CALL_SECONDS)

    def _send(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, **QUIET}
        )
        number = 0
        while not self._is_over.wait(PAUSE_SECONDS):
            for _ in range(RECORDS_AT_ONCE):
                producer.produce(
                    self.name, b"x", partition=number % PARTITIONS, on_delivery=self._delivered
                )
                number += 1
            producer.poll(0)
        assert producer.flush(CALL_SECONDS) == 0

    def _delivered(self, error: object, message: Message) -> None:
        assert error is None, error
        self._sent[_known(message.partition())] += 1

    def _committed(self) -> dict[int, int]:
        """Return the committed offsets as seen by a new client."""
        asked = [TopicPartition(self.name, partition) for partition in range(PARTITIONS)]
        options = {"bootstrap.servers": self.bootstrap, "group.id": self.name, **QUIET}
        with closing(Consumer(options)) as client:
            found = patiently(lambda: client.committed(asked, CALL_SECONDS))
        return {one.partition: one.offset for one in found}

    def _missing(self) -> dict[int, int]:
        return {
            partition: count - len(self.ledger.seen[partition])
            for partition, count in self._sent.items()
        }


_ALL = list(range(PARTITIONS))


def _wait(condition: Callable[[], bool], shown: Callable[[], object]) -> None:
    deadline = time.monotonic() + 2 * CALL_SECONDS
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(PAUSE_SECONDS)


def _known(value: int | None) -> int:
    assert value is not None
    return value
