"""Three brokers under a seeded schedule of faults: what waits comes once, what is cancelled never.

One producer sends records with drawn delays and cancels some that were acknowledged, another sends
them in transactions, of which it aborts some; leaders move between the faults.

`CLUSTER_FAULT_SEEDS`, `CLUSTER_FAULT_EPISODES` and `CLUSTER_FAULTS` are those of
`tests.interop.clusters.test_cluster_faults`.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.clusters.test_cluster_faults import EPISODES, run_episode, schedule_of
from tests.interop.conftest import against_apache, create_topic
from tests.support.brokers.cluster import Cluster
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SEEDS = [int(seed) for seed in os.environ.get("CLUSTER_FAULT_SEEDS", "1 2 3").split()]
TOPICS = LATER, COMMITTED = "later", "committed"
CONFIG = {"delivery.delay.enable": "true", "segment.bytes": "100000"}
DELAYS_MS = 0, 1, 20, 500, 3000, 9000
CANCELLED_MS = 12_000
"""The delay of records that are to be cancelled."""
TURN_SECONDS = 0.05
PATIENCE_SECONDS = 120.0
CLIENT = {"socket.timeout.ms": 5000, "reconnect.backoff.max.ms": 300, "log_level": 0}

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="Apache Kafka has no delays"),
    pytest.mark.slow,
    pytest.mark.timeout(600 + 300 * EPISODES),
]


class Load(threading.Thread):
    """Works beside the test until it is finished."""

    def __init__(self, bootstrap: str, topic: str, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.wanted: set[bytes] = set()
        """Values that are to be visible, once."""
        self.unwanted: set[bytes] = set()
        """Values that are never to be visible."""
        self.failures: list[str] = []
        self._servers = {"bootstrap.servers": bootstrap, **CLIENT}
        self._topic = topic
        self._chance = chance
        self._is_over = threading.Event()
        self._sent = 0

    def run(self) -> None:
        while not self._is_over.wait(self._chance.uniform(0, 2 * TURN_SECONDS)):
            self.send()

    def finish(self) -> None:
        """Send no more, and wait for what is under way."""
        self._is_over.set()
        self.join()

    def send(self) -> None:
        """Send some."""
        raise NotImplementedError

    def _new_value(self) -> bytes:
        self._sent += 1
        return b"%s-%d" % (self._topic.encode(), self._sent)


def after(delay_ms: int) -> list[tuple[str, str | bytes | None]]:
    """The header of a record with a delay."""
    return [("deliver-after", b"%d" % delay_ms)] if delay_ms else []


class CancelledLoad(Load):
    """An idempotent producer of records with delays, and one that cancels."""

    def __init__(self, bootstrap: str, chance: random.Random) -> None:
        super().__init__(bootstrap, LATER, chance)
        patient = {**self._servers, "message.timeout.ms": 200_000, "batch.size": 16_000}
        self._producer = Producer({**patient, "enable.idempotence": True})
        self._canceller = Producer({**patient, "acks": "all"})

    def send(self) -> None:
        for _ in range(self._chance.randint(1, 20)):
            is_to_cancel = self._chance.random() < 0.1
            delay_ms = CANCELLED_MS if is_to_cancel else self._chance.choice(DELAYS_MS)
            told = self._teller(self._new_value(), is_to_cancel=is_to_cancel)
            self._producer.produce(
                self._topic, told[0], headers=after(delay_ms), on_delivery=told[1]
            )
        self._producer.poll(0)
        self._canceller.poll(0)

    def finish(self) -> None:
        super().finish()
        assert self._producer.flush(PATIENCE_SECONDS) == 0
        assert self._canceller.flush(PATIENCE_SECONDS) == 0

    def _teller(
        self, value: bytes, *, is_to_cancel: bool
    ) -> tuple[bytes, Callable[[Any, Any], None]]:
        def told(error: Any, message: Any) -> None:
            if error is not None:
                self.failures.append(str(error))
            elif is_to_cancel:
                self._cancel(value, message.offset())
            else:
                self.wanted.add(value)

        return value, told

    def _cancel(self, value: bytes, offset: int) -> None:
        def told(error: Any, _: Any) -> None:
            if error is None:  # one that is refused may have been taken at the first attempt
                self.unwanted.add(value)

        headers: list[tuple[str, str | bytes | None]] = [("deliver-cancel", b"%d" % offset)]
        self._canceller.produce(self._topic, headers=headers, on_delivery=told)


class TransactionalLoad(Load):
    """Load whose transactions without a known end are neither wanted nor unwanted."""

    def __init__(self, bootstrap: str, chance: random.Random) -> None:
        super().__init__(bootstrap, COMMITTED, chance)
        self._producer: Producer | None = None

    def send(self) -> None:
        values = {self._new_value() for _ in range(self._chance.randint(1, 15))}
        is_to_commit = self._chance.random() < 0.7
        try:
            self._transact(values, is_to_commit=is_to_commit)
        except KafkaException:
            self._producer = None
        else:
            (self.wanted if is_to_commit else self.unwanted).update(values)

    def _transact(self, values: set[bytes], *, is_to_commit: bool) -> None:
        if self._producer is None:
            producer = Producer({**self._servers, "transactional.id": "t"})
            producer.init_transactions(PATIENCE_SECONDS)
            self._producer = producer
        self._producer.begin_transaction()
        for value in values:
            self._producer.produce(
                self._topic, value, headers=after(self._chance.choice(DELAYS_MS))
            )
        if is_to_commit:
            self._producer.commit_transaction(PATIENCE_SECONDS)
        else:
            self._producer.abort_transaction(PATIENCE_SECONDS)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for topic in TOPICS:
            create_topic(admin, topic, 1, CONFIG, replicas=3)
        yield cluster


@pytest.mark.parametrize("seed", SEEDS)
def test_faults_break_no_promise_of_delays(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **CLIENT})
    loads: list[Load] = [
        CancelledLoad(cluster.bootstrap, random.Random(f"cancelled-{seed}")),
        TransactionalLoad(cluster.bootstrap, random.Random(f"transactional-{seed}")),
    ]
    for load in loads:
        load.start()
    wait_until(lambda: all(load.wanted for load in loads), PATIENCE_SECONDS)
    for schedule in [schedule_of(chance) for _ in range(EPISODES)]:
        run_episode(cluster, schedule, chance)
        elect_preferred(admin)
    for load in loads:
        load.finish()

    for topic, load in zip(TOPICS, loads, strict=True):
        assert load.failures == []
        found = read_until_all_came(cluster.bootstrap, topic, load.wanted)
        assert load.wanted - found.keys() == set(), "lost"
        assert load.unwanted & found.keys() == set(), "cancelled, or aborted"
        assert [value for value, count in found.items() if count > 1] == []
        assert wait_until(
            lambda at=(topic, 0): len(set(cluster.log_bytes(*at))) == 1,  # type: ignore[misc]
            PATIENCE_SECONDS,
        ), "the replicas differ"
    for member in cluster.members:
        said = member.process.output_path.read_text(errors="replace")
        assert "Traceback" not in said
        assert "UNKNOWN_SERVER_ERROR" not in said


def elect_preferred(admin: AdminClient) -> None:
    """Ask for it once; the controller may be another one now."""
    wanted = [TopicPartition(topic, 0) for topic in TOPICS]
    try:
        admin.elect_leaders(ElectionType.PREFERRED, wanted).result(PATIENCE_SECONDS)
    except KafkaException as error:
        print("  not elected:", error, flush=True)


def read_until_all_came(bootstrap: str, topic: str, wanted: set[bytes]) -> Counter[bytes]:
    """Count each visible value, once all wanted ones are visible and every delay has passed."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "x", "enable.auto.commit": False, **CLIENT}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: Counter[bytes] = Counter()
    first_end = time.monotonic() + CANCELLED_MS / 1000
    last_end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < (first_end if wanted <= found.keys() else last_end):
        for message in consumer.consume(500, 0.5):
            value = message.value()
            if message.error() is None and value is not None:
                found[value] += 1
    consumer.close()
    return found
