"""Groups, transactions and readers over three brokers, when a broker that serves them is killed.

What was committed stays so, and clients go on without being told of it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from coordinator.partitioner import partition_for
from tests.interop.clients import confluent
from tests.interop.clients.record import Sending, numbered_records
from tests.interop.conftest import against_apache, create_topic, eventually, patiently
from tests.interop.transactions.test_exactly_once import (
    Progress,
    held,
    java_copier,
    python_copier,
    values,
)
from tests.interop.workloads.word_count import LINES_AT_ONCE, WORDS_PER_LINE, Options, WordCount
from tests.support import jars
from tests.support.brokers.trio import OFFSETS, TRANSACTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conftest import NewName
    from tests.support.brokers.trio import Trio

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="it is our brokers that are killed"),
    pytest.mark.slow,
]

COORDINATOR_PARTITIONS = 3
PARTITIONS = 4
CALL_SECONDS = 120.0
RECORDS = 100
"""Records in each partition, each time."""


def send(trio: Trio, topic: str, partitions: int, count: int = RECORDS) -> None:
    for partition in range(partitions):
        sending = Sending(style="callback", is_idempotent=True)
        confluent.produce(trio.bootstrap, topic, numbered_records(count, partition), sending)


def coordinator(trio: Trio, topic: str, key: str) -> tuple[int, int]:
    """Partition of the coordinator's topic, and the broker that leads it."""
    partition = partition_for(key, COORDINATOR_PARTITIONS)
    return partition, trio.leader(topic, partition)


class Member(threading.Thread):
    """A consumer in a group that commits what it has read."""

    def __init__(self, trio: Trio, group: str, topic: str) -> None:
        super().__init__(name="member")
        self.seen: list[tuple[int, int]] = []
        self.assigned = 0
        """Partitions that it has; none while it waits for the others."""
        self.revocations = 0
        self.is_stopped = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": trio.bootstrap,
                "group.id": group,
                "session.timeout.ms": 20_000,
                "heartbeat.interval.ms": 300,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def run(self) -> None:
        with closing(self._consumer):
            while not self.is_stopped.is_set():
                messages = [one for one in self._consumer.consume(100, 0.1) if not one.error()]
                self.seen += (
                    (one.partition, one.offset) for one in map(confluent.record_of, messages)
                )
                if messages:
                    self._commit()

    def _commit(self) -> None:
        while not self.is_stopped.is_set():
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException:
                time.sleep(0.1)
            else:
                return

    def _assigned(self, _: object, partitions: list[TopicPartition]) -> None:
        self.assigned = len(partitions)

    def _revoked(self, *_: object) -> None:
        self.assigned = 0
        self.revocations += 1


def committed(trio: Trio, group: str, topic: str) -> dict[int, int]:
    """Return the committed offsets as seen by a new client."""
    asked = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    with closing(
        Consumer({"bootstrap.servers": trio.bootstrap, "group.id": group, "log_level": 0})
    ) as client:
        found = patiently(lambda: client.committed(asked, CALL_SECONDS))
    return {one.partition: one.offset for one in found}


def test_a_group_goes_on_when_its_coordinator_is_killed(trio: Trio, new_name: NewName) -> None:
    topic, group = new_name("read"), new_name("readers")
    create_topic(trio.admin, topic, PARTITIONS, replicas=3)
    members = [Member(trio, group, topic) for _ in range(2)]
    for member in members:
        member.start()
    try:
        share = PARTITIONS / len(members)
        eventually(lambda: all(member.assigned == share for member in members))
        send(trio, topic, PARTITIONS)
        everything = dict.fromkeys(range(PARTITIONS), RECORDS)
        eventually(lambda: committed(trio, group, topic) == everything)
        revocations = [member.revocations for member in members]

        partition, killed = coordinator(trio, OFFSETS, group)
        trio.brokers[killed].kill()
        trio.wait_for_another_leader(OFFSETS, partition, killed)

        assert committed(trio, group, topic) == everything
        send(trio, topic, PARTITIONS)
        everything = dict.fromkeys(range(PARTITIONS), 2 * RECORDS)
        eventually(lambda: committed(trio, group, topic) == everything)
        assert [member.revocations for member in members] == revocations
    finally:
        for member in members:
            member.is_stopped.set()
        for member in members:
            member.join(CALL_SECONDS)
    seen = [place for member in members for place in member.seen]
    assert sorted(seen) == [(p, at) for p in range(PARTITIONS) for at in range(2 * RECORDS)]


def test_copies_are_exact_when_coordinator_and_leader_are_killed(
    trio: Trio, tmp_path: Path
) -> None:
    java = f"java-{jars.KAFKA_4}"
    for topic in ("source", java, "confluent-kafka"):
        create_topic(trio.admin, topic, 2, replicas=3)
    send(trio, "source", 2, 600)
    copiers = [
        java_copier(jars.KAFKA_4, trio.bootstrap, tmp_path),
        python_copier("confluent-kafka", trio.bootstrap, tmp_path),
    ]
    try:
        with closing(Progress(trio.bootstrap, copiers)) as progress:
            trio.wait_for_records(java, 1, 100)
            partition, killed = coordinator(trio, TRANSACTIONS, java)
            trio.brokers[killed].kill()
            trio.wait_for_another_leader(TRANSACTIONS, partition, killed)
            trio.wait_for_records(java, 1, 300)
            trio.heal()
            trio.brokers[trio.leader(java, 1)].kill()
            progress.wait_for_all()
    finally:
        for copier in copiers:
            copier.kill()

    source = held(trio.bootstrap, "source")
    counts = Counter(partition for partition, *_ in source)
    assert len(source) == 1200, f"{counts}; again {len(held(trio.bootstrap, 'source'))}"
    assert values(held(trio.bootstrap, java), 1) == values(source, 1)
    copied = held(trio.bootstrap, "confluent-kafka")
    for partition in range(2):
        assert values(copied, partition) == values(source, partition)


def test_streams_counts_each_word_once_when_a_broker_is_killed(trio: Trio, tmp_path: Path) -> None:
    chapter_words = LINES_AT_ONCE * WORDS_PER_LINE
    for topic in ("lines", "words"):
        create_topic(trio.admin, topic, 2, replicas=3)
    with closing(WordCount(trio.bootstrap, tmp_path, Options())) as word_count:
        for chapter in range(3):
            word_count.give(chapter)
            word_count.wait_for(chapter * chapter_words + chapter_words // 2)
            if chapter == 0:
                trio.brokers[coordinator(trio, OFFSETS, "word-count")[1]].kill()
            if chapter == 1:
                trio.heal()
                trio.brokers[trio.leader("words", 0)].kill()
        word_count.wait_for(3 * chapter_words)
        assert word_count.has_counted_once(), word_count.told


class RackReader:
    """A consumer in a rack, which says from which broker it fetches."""

    def __init__(self, trio: Trio, topic: str, rack: str) -> None:
        self.count = 0
        self._fetches_by_broker: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": trio.bootstrap,
                "group.id": "rack-readers",
                "client.rack": rack,
                "statistics.interval.ms": 100,
                "stats_cb": self._note,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def wait_for(self, count: int) -> None:
        """Wait until it has so many records."""
        eventually(lambda: self._read() >= count)

    def fetches(self, broker: int) -> int:
        """Return how often it has fetched from a broker."""
        self._consumer.poll(0)
        return self._fetches_by_broker.get(broker, 0)

    def close(self) -> None:
        self._consumer.close()

    def _read(self) -> int:
        self.count += sum(not one.error() for one in self._consumer.consume(100, 0.1))
        return self.count

    def _note(self, statistics: str) -> None:
        told: dict[str, Any] = json.loads(statistics)
        for broker in told["brokers"].values():
            self._fetches_by_broker[broker["nodeid"]] = broker["req"].get("Fetch", 0)


def test_consumers_read_in_their_rack_as_long_as_there_is_a_broker(
    trio: Trio, new_name: NewName
) -> None:
    topic = new_name("near")
    create_topic(trio.admin, topic, 1, replicas=3)
    send(trio, topic, 1)
    near = (trio.leader(topic, 0) + 1) % 3
    with closing(RackReader(trio, topic, f"rack-{near}")) as reader:
        reader.wait_for(RECORDS)
        eventually(lambda: reader.fetches(near) > 0)
        fetched = reader.fetches(near)
        send(trio, topic, 1)
        reader.wait_for(2 * RECORDS)
        eventually(lambda: reader.fetches(near) > fetched)

        trio.brokers[near].kill()
        send(trio, topic, 1)
        reader.wait_for(3 * RECORDS)
