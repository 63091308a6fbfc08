"""kill -9 while retention frees the disk under load: it never gives back, and takes only the old.

Segments of 60 KB, of which retention keeps two; Apache Kafka 4 takes none below 1 MiB.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.clients import confluent
from tests.interop.conftest import against_apache, create_topic, patiently
from tests.interop.logs.test_kill_under_load import PARTITIONS, Load
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

KILLS = 5
PADDING = bytes(200)
LEAST_SECONDS, MOST_SECONDS = 0.5, 1.2
REST_SECONDS = 1.0
"""Fifty looks of retention."""
TOPIC = "thinned"
LIMITS = {"segment.bytes": "60000", "retention.bytes": "120000", "index.interval.bytes": "200"}
HASTY = {
    "log.retention.check.interval.ms": "20",
    "log.initial.task.delay.ms": "0",
    "log.segment.delete.delay.ms": "50",
}


@pytest.fixture
def hasty(tmp_path: Path) -> BrokerProcess:
    """A broker, not yet started, that looks after its logs fifty times a second."""
    return ours(tmp_path / "hasty", HASTY)


def bounds(bootstrap: str) -> list[tuple[int, int]]:
    """Return the log start offset and high watermark of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bounds"})
    try:
        asked = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        return [
            patiently(lambda: consumer.get_watermark_offsets(one, 30.0))  # noqa: B023
            for one in asked
        ]
    finally:
        consumer.close()


def bounds_at_rest(bootstrap: str) -> list[tuple[int, int]]:
    """Return `bounds` once retention has nothing more to free, as nothing is written any more."""
    before, now = None, bounds(bootstrap)
    while now != before:
        time.sleep(REST_SECONDS)
        before, now = now, bounds(bootstrap)
    return now


def check_what_is_left(bootstrap: str, loads: list[Load]) -> None:
    """Check that all acknowledged records from the log start on are there, once and in order."""
    held = bounds_at_rest(bootstrap)
    assert max(low for low, _ in held) > 0, "retention has freed nothing"
    records = confluent.read(bootstrap, TOPIC, sum(high - low for low, high in held))
    left: dict[tuple[int, bytes], list[bytes]] = defaultdict(list)
    for partition, (low, high) in enumerate(held):
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(low, high))
    for record in records:
        assert record.value is not None
        left[record.partition, record.value.partition(b":")[0]].append(record.value)
    for load in loads:
        assert load.failures == []
        for partition in range(PARTITIONS):
            values = left[partition, load.name.encode()]
            acknowledged = sorted(value for at, value in load.acknowledged if at == partition)
            assert values == acknowledged[len(acknowledged) - len(values) :]


@pytest.mark.slow
@pytest.mark.skipif(against_apache(), reason="Apache takes no segments of 60 KB")
@pytest.mark.parametrize("seed", [3])
def test_log_starts_only_go_up_and_nothing_above_them_is_lost(
    hasty: BrokerProcess, seed: int
) -> None:
    chance = random.Random(seed)
    hasty.start()
    create_topic(AdminClient({"bootstrap.servers": hasty.bootstrap}), TOPIC, PARTITIONS, LIMITS)
    loads = [Load(f"writer-{number}", hasty.bootstrap, TOPIC, PADDING) for number in range(1, 3)]
    starts = [0] * PARTITIONS
    for load in loads:
        load.start()
    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(LEAST_SECONDS, MOST_SECONDS))
            seen = [low for low, _ in bounds(hasty.bootstrap)]
            hasty.kill()
            hasty.start()
            now = [low for low, _ in bounds(hasty.bootstrap)]
            assert all(a <= b <= c for a, b, c in zip(starts, seen, now, strict=True))
            starts = now
    finally:
        for load in loads:
            load.finish()
    try:
        check_what_is_left(hasty.bootstrap, loads)
    finally:
        hasty.kill()
