"""Three brokers under a seeded schedule of faults, with clients at work: every promise is kept.

Two idempotent producers with acks=all, of librdkafka and of kafka-clients, and a consumer group of
two run on while brokers, disks, links and ZooKeeper fail and come back; clocks are apart.

`CLUSTER_FAULT_SEEDS="5 6 7"` runs these seeds instead, and `CLUSTER_FAULT_EPISODES=20` makes each
of them as long as that (both together: minutes). `CLUSTER_FAULTS="frozen killed"` takes only those
of `tests.support.brokers.cluster_faults`.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from protocol.records.batch import iterate_headers
from tests.interop.clients import confluent
from tests.interop.conftest import against_apache, patiently
from tests.interop.workloads.steady_load import ConfluentLoad, JavaLoad, Target
from tests.support.brokers import cluster_faults
from tests.support.brokers.cluster import Cluster
from tests.support.brokers.cluster_faults import FOR_ALL, ON_A_BROKER, Fault
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from tests.interop.clients.record import Record
    from tests.interop.workloads.steady_load import Load

SEEDS = [
    int(seed) for seed in os.environ.get("CLUSTER_FAULT_SEEDS", "1 2 3 4 5 6 7 8 9 10").split()
]
EPISODES = int(os.environ.get("CLUSTER_FAULT_EPISODES", "1"))
CHOSEN = os.environ.get("CLUSTER_FAULTS", "").split()

TOPIC = "witness"
PARTITIONS = 3
RATE = 500
HEALED_SECONDS = 120.0
READ_SECONDS = 240.0
CALL_SECONDS = 120.0
CLOCK_STEP_MS = 1_200_000
"""Twice that is less than `message.timestamp.after.max.ms`, by which records are refused."""

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="it is our brokers that fail"),
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.timeout(600 + 300 * EPISODES),
]


class Reader(threading.Thread):
    """Works beside the test until it is stopped."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.is_stopped = threading.Event()


class GroupMember(Reader):
    """Reads the topic in a group; remembers all it was ever given."""

    def __init__(self, name: str, bootstrap: str) -> None:
        super().__init__(name)
        self.seen: dict[tuple[int, int], bytes | None] = {}
        self.contradictions: list[str] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "witnesses",
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                "socket.timeout.ms": 5000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe([TOPIC])
        while not self.is_stopped.is_set():
            for message in self._consumer.consume(500, 0.1):
                if message.error() is None:
                    self._see(confluent.record_of(message))
        self._consumer.close()

    def _see(self, record: Record) -> None:
        place, value = (record.partition, record.offset), record.value
        if self.seen.setdefault(place, value) != value:
            self.contradictions.append(f"{place}: {self.seen[place]!r}, later {value!r}")


class HighWatermarks(Reader):
    """Asks again and again how far the partitions are committed: that never goes back."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__("high-watermarks")
        self.steps_back: list[str] = []
        self._highest: dict[int, int] = defaultdict(int)
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "none", "log_level": 0}
        )

    def run(self) -> None:
        while not self.is_stopped.wait(0.05):
            for partition in range(PARTITIONS):
                self._ask(partition)
        self._consumer.close()

    def _ask(self, partition: int) -> None:
        try:
            asked = TopicPartition(TOPIC, partition)
            _, high = self._consumer.get_watermark_offsets(asked, 1.0, cached=False)
        except (KafkaException, TypeError):
            return
        if high < self._highest[partition]:
            self.steps_back.append(f"{partition}: {self._highest[partition]}, later {high}")
        self._highest[partition] = max(high, self._highest[partition])


@pytest.fixture
def cluster(tmp_path: Path, seed: int) -> Iterator[Cluster]:
    """Three brokers whose clocks are twenty minutes apart, and a topic."""
    cluster = Cluster(tmp_path)
    for member in cluster.members:
        member.set_clock_ahead(
            random.Random(seed).choice([-CLOCK_STEP_MS, CLOCK_STEP_MS]) * member.number
        )
    with cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        created = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
        created[TOPIC].result(CALL_SECONDS)
        yield cluster


@pytest.mark.parametrize("seed", SEEDS)
def test_no_record_is_lost_or_repeated_under_drawn_faults(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    with Work(cluster.bootstrap) as work:
        for schedule in [schedule_of(chance) for _ in range(EPISODES)]:
            run_episode(cluster, schedule, chance)
        for load in work.loads:
            load.finish()
            assert not load.failures, (len(load.failures), load.failures[:3])
            assert len(load.acknowledged) > RATE / 10

        records = all_records(cluster.bootstrap)
        check_nothing_is_lost_or_repeated(records, work.loads)
        assert wait_until(lambda: len(work.seen_places()) >= len(records), READ_SECONDS)

    check_readers(work, records)
    check_replicas(cluster, records)


class Work:
    """The clients."""

    def __init__(self, bootstrap: str) -> None:
        target = Target(TOPIC, PARTITIONS, RATE)
        self.loads: list[Load] = [
            ConfluentLoad("librdkafka", bootstrap, target),
            JavaLoad("kafka-clients", bootstrap, target),
        ]
        self.members = [GroupMember(f"witness-{number}", bootstrap) for number in range(2)]
        self.high_watermarks = HighWatermarks(bootstrap)
        self._readers: tuple[Reader, ...] = (*self.members, self.high_watermarks)

    def __enter__(self) -> Self:
        """Begin all, and wait until records are acknowledged."""
        for load in self.loads:
            load.start()
        for reader in self._readers:
            reader.start()
        wait_until(lambda: all(load.acknowledged for load in self.loads), CALL_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        for load in self.loads:
            load.stop()
        for reader in self._readers:
            reader.is_stopped.set()
        for reader in self._readers:
            reader.join(CALL_SECONDS)

    def seen_places(self) -> set[tuple[int, int]]:
        """Return all places from which the group received a record."""
        return {place for member in self.members for place in list(member.seen)}


def schedule_of(chance: random.Random) -> list[tuple[Fault, int]]:
    """Draw the simultaneous faults: one cluster-wide fault, or faults of one or two brokers."""
    everything = [fault for fault in (*ON_A_BROKER, *FOR_ALL) if is_chosen(fault)]
    numbers = chance.sample(range(3), 3)
    first = chance.choice(everything)
    companions = [fault for fault in ON_A_BROKER if is_chosen(fault)]
    if first not in companions or chance.random() < 0.6:
        return [(first, numbers[0])]
    return [(first, numbers[0]), (chance.choice(companions), numbers[1])]


def is_chosen(fault: Fault) -> bool:
    """Return whether `CLUSTER_FAULTS` allows this fault."""
    return not CHOSEN or name_of(fault) in CHOSEN


def name_of(fault: Fault) -> str:
    """Return its name in `CLUSTER_FAULTS`."""
    return str(getattr(fault, "__name__", fault))


def run_episode(cluster: Cluster, schedule: list[tuple[Fault, int]], chance: random.Random) -> None:
    """Begin the faults, let them last, heal, and wait until the cluster is whole again."""
    names = [f"{name_of(fault)} {number}" for fault, number in schedule]
    print("faults:", *names, flush=True)
    with ExitStack() as faults:
        for fault, number in schedule:
            faults.enter_context(fault(cluster, cluster.members[number], chance))
            time.sleep(chance.uniform(0, 0.5))
        cluster_faults.last(chance)
    begin = time.monotonic()
    is_whole = wait_until(lambda: not cluster.ailments(), HEALED_SECONDS)
    print(f"  healed after {time.monotonic() - begin:.1f} s", flush=True)
    assert is_whole, cluster.ailments()


def all_records(bootstrap: str) -> list[Record]:
    """Return all records of the topic, by partition and offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "counter"})

    def held_by(partition: int) -> int:
        asked = TopicPartition(TOPIC, partition)
        low, high = patiently(lambda: consumer.get_watermark_offsets(asked, CALL_SECONDS))
        assert low == 0
        return int(high)

    held = [held_by(partition) for partition in range(PARTITIONS)]
    consumer.close()
    return confluent.read(bootstrap, TOPIC, sum(held))


def check_nothing_is_lost_or_repeated(records: list[Record], loads: list[Load]) -> None:
    """Check that each producer's records are stored in order, once, none acknowledged missing."""
    stored: dict[tuple[int, bytes], list[bytes]] = defaultdict(list)
    for record in records:
        assert record.value is not None
        stored[record.partition, record.value.partition(b":")[0]].append(record.value)
    for (partition, writer), values in stored.items():
        assert len(values) == len(set(values)), f"{writer!r} in {partition}: {repeated(values)}"
        assert values == sorted(values), f"{writer!r} in {partition}: out of order"
    places = {(record.partition, record.value): record.offset for record in records}
    for load in loads:
        for partition, offset, value in load.acknowledged:
            found = places.get((partition, value))
            assert found is not None, f"{value!r} at {partition}/{offset} is lost"
            assert offset in (-1, found), f"{value!r} acknowledged at {offset} is at {found}"


def repeated(values: list[bytes]) -> list[bytes]:
    """The first few values that are there more than once."""
    seen: set[bytes] = set()
    return [value for value in values if value in seen or seen.add(value)][:5]  # type: ignore[func-returns-value]


def check_readers(work: Work, records: list[Record]) -> None:
    """The group was given what is stored, all of it; what is committed never went back."""
    assert work.high_watermarks.steps_back == []
    stored = {(record.partition, record.offset): record.value for record in records}
    for member in work.members:
        assert member.contradictions == []
        for place, value in member.seen.items():
            assert stored.get(place) == value, f"{member.name} was given {value!r} at {place}"
    assert work.seen_places() == stored.keys()


def check_replicas(cluster: Cluster, records: list[Record]) -> None:
    """Check that all replicas have the same bytes, and nothing beside the records."""
    for topic in (TOPIC, "__consumer_offsets"):
        for partition in range(PARTITIONS):
            assert wait_until(
                lambda at=(topic, partition): len(set(cluster.log_bytes(*at))) == 1,  # type: ignore[misc]
                CALL_SECONDS,
            ), [len(one) for one in cluster.log_bytes(topic, partition)]
    for partition in range(PARTITIONS):
        stored = memoryview(cluster.log_bytes(TOPIC, partition)[0])
        count = sum(header.record_count for _, header in iterate_headers(stored))
        assert count == sum(record.partition == partition for record in records)
