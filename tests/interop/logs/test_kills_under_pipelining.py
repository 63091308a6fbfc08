"""Five requests under way while a broker ends and comes back: acknowledged records are as sent.

A broker of ours in ZooKeeper mode is killed, stopped or frozen at drawn moments, also while it
starts, and started again at once; its clients connect as soon as it listens and pipeline on.
"""

from __future__ import annotations

import threading
import time
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.clients import confluent
from tests.interop.conftest import against_apache, create_topic, patiently
from tests.interop.workloads.pipelined import Manner, PipelinedLoad
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import TICK_MS, ZooKeeperServer
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="starts a broker of ours"),
    pytest.mark.slow,
]

TOPIC = "pipelined"
MANY = 100
SESSION_MS = 3 * TICK_MS
PROGRESS_SECONDS = 120.0
FLUSH_SECONDS = 120.0
MOST_QUEUED = 500
POLL_SECONDS = 0.02


class Load(Protocol):
    """A producer that sends to one partition from `start` to `finish`."""

    name: str
    partition: int
    sent: list[bytes]
    acknowledged: list[tuple[int, bytes]]
    failures: list[str]

    def start(self) -> None: ...
    def finish(self) -> None: ...


class Librdkafka(threading.Thread):
    """librdkafka with five requests under way: idempotent, or plain without retries."""

    def __init__(self, name: str, port: int, partition: int, *, is_idempotent: bool) -> None:
        super().__init__(name=name, daemon=True)
        self.partition = partition
        self.sent: list[bytes] = []
        self.acknowledged: list[tuple[int, bytes]] = []
        self.failures: list[str] = []
        self._is_idempotent = is_idempotent
        self._stop_asked = threading.Event()
        config: dict[str, object] = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "enable.idempotence": is_idempotent,
            "acks": "all",
            "max.in.flight": 5,
            "linger.ms": 0,
            "batch.num.messages": 3,
            "message.timeout.ms": 300_000,
            "reconnect.backoff.ms": 1,
            "reconnect.backoff.max.ms": 50,
        }
        if not is_idempotent:
            config["retries"] = 0
        self._producer = Producer(config)

    def run(self) -> None:
        """Send on and on."""
        number = 0
        while not self._stop_asked.is_set():
            if len(self._producer) < MOST_QUEUED:
                value = f"{self.name}:{number:08}|".encode() * (1 + number % 40)
                number += 1
                self.sent.append(value)
                self._producer.produce(
                    TOPIC, value, partition=self.partition, on_delivery=self._delivered
                )
            self._producer.poll(0.002)
        if self._producer.flush(FLUSH_SECONDS):
            self.failures.append("records are still not answered")

    def finish(self) -> None:
        """Send no more, and wait until everything is answered."""
        self._stop_asked.set()
        self.join()

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            placed = message.offset(), message.value()  # type: ignore[attr-defined]
            self.acknowledged.append(placed)
        elif self._is_idempotent:
            self.failures.append(str(error))


class Stored(NamedTuple):
    """Records of a partition."""

    by_offset: dict[int, bytes]

    @classmethod
    def of(cls, bootstrap: str, partition: int) -> Stored:
        """Read it with a stock consumer."""
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "counter"})
        asked = TopicPartition(TOPIC, partition)
        low, high = patiently(lambda: consumer.get_watermark_offsets(asked, 30.0))
        consumer.close()
        assert low == 0
        return cls(confluent.values_of(bootstrap, TOPIC, partition, high))

    def check(self, load: Load, *, is_idempotent: bool) -> None:
        """Compare with the records of one producer, and its acknowledgements."""
        values = list(self.by_offset.values())
        place = {value: number for number, value in enumerate(load.sent)}
        strange = [value for value in values if value not in place]
        assert not strange, f"{load.name}: never sent: {[one[:40] for one in strange[:3]]}"
        lost = [
            (offset, value[:40], self.by_offset.get(offset, b"nothing")[:40])
            for offset, value in load.acknowledged
            if self.by_offset.get(offset) != value
        ]
        assert not lost, f"{load.name}: {len(lost)} acknowledged are not as sent: {lost[:3]}"
        assert len(set(values)) == len(values), f"{load.name}: a record is stored twice"
        if is_idempotent:
            assert [place[value] for value in values] == list(range(len(values))), load.name


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Return a broker that runs in ZooKeeper mode, with a topic."""
    zookeeper = ZooKeeperServer(tmp_path / "zookeeper")
    process = ours(
        tmp_path / "broker",
        {
            "zookeeper.connect": zookeeper.address,
            "zookeeper.session.timeout.ms": str(SESSION_MS),
        },
    )
    try:
        zookeeper.start()
        process.start()
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        create_topic(admin, TOPIC, 5, {"segment.bytes": "1048576"})
        yield process
    finally:
        process.kill()
        zookeeper.kill()


def loads_on(broker: BrokerProcess) -> list[tuple[Load, bool]]:
    """Producers of all kinds, one to a partition, and whether each is idempotent."""
    manners = {
        "raw-idempotent": Manner(is_idempotent=True, acks=-1, sizes=(20, 5000)),
        "raw-all": Manner(is_idempotent=False, acks=-1, sizes=(300, 300), most_records=1),
        "raw-leader": Manner(is_idempotent=False, acks=1, sizes=(300, 300), most_records=1),
    }
    loads: list[tuple[Load, bool]] = [
        (PipelinedLoad(name, broker.port, TOPIC, number, manner), manner.is_idempotent)
        for number, (name, manner) in enumerate(manners.items())
    ]
    loads.append((Librdkafka("librdkafka", broker.port, 3, is_idempotent=True), True))
    loads.append((Librdkafka("librdkafka-once", broker.port, 4, is_idempotent=False), False))
    return loads


def killed(broker: BrokerProcess, chance: Random) -> None:
    """SIGKILL, and started again at once."""
    broker.kill()
    broker.launch()


def stopped(broker: BrokerProcess, chance: Random) -> None:
    """SIGTERM, and started again at once."""
    broker.stop()
    broker.launch()


def frozen(broker: BrokerProcess, chance: Random) -> None:
    """SIGSTOP, for less than its session or for longer."""
    broker.freeze()
    time.sleep(chance.uniform(0.0, 1.5 * SESSION_MS / 1000))
    broker.thaw()


def disturb(
    broker: BrokerProcess, loads: list[Load], faults: Sequence[str], chance: Random
) -> None:
    """Cause one fault after the other; before most of them all clients recover."""
    kinds = {"killed": killed, "stopped": stopped, "frozen": frozen}
    for fault in faults:
        if chance.random() < 0.7:
            counts = {load.name: len(load.acknowledged) for load in loads}
            get_on = wait_until(
                lambda: all(len(one.acknowledged) > counts[one.name] for one in loads),  # noqa: B023
                PROGRESS_SECONDS,
                POLL_SECONDS,
            )
            assert get_on, f"nobody gets on after a fault:\n{broker.output_tail()}"
        time.sleep(chance.uniform(0.0, 0.7))
        kinds[fault](broker, chance)


def run(broker: BrokerProcess, faults: Sequence[str], chance: Random) -> None:
    """Load, faults, and the comparison."""
    loads = loads_on(broker)
    for load, _ in loads:
        load.start()
    try:
        disturb(broker, [load for load, _ in loads], faults, chance)
        broker.wait_until_serving()
        time.sleep(chance.uniform(0.2, 0.5))
    finally:
        for load, _ in loads:
            load.finish()
    for load, is_idempotent in loads:
        assert load.acknowledged, load.name
        Stored.of(broker.bootstrap, load.partition).check(load, is_idempotent=is_idempotent)
    for load, _ in loads:
        assert load.failures == [], f"{load.name}: {load.failures[:5]}"


@pytest.mark.timeout(600)
def test_acknowledged_records_are_as_sent_after_three_kills(broker: BrokerProcess) -> None:
    run(broker, ["killed", "stopped", "killed"], Random(3))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_acknowledged_records_are_as_sent_after_a_hundred_kills(broker: BrokerProcess) -> None:
    chance = Random(100)
    faults = chance.choices(["killed", "stopped", "frozen"], [4, 4, 2], k=MANY)

    run(broker, faults, chance)
