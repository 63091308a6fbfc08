"""Records of streams groups, written by Apache Kafka 4 or ours, loaded by the other."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from coordinator import records
from tests.interop.coordinators.consumer_heartbeats import Step, create_topics
from tests.interop.coordinators.test_consumer_group_logs import OFFSETS, SEGMENT, started, stored
from tests.interop.streams.streams_heartbeats import (
    StreamsSide,
    draw,
    joining,
    missing_topics,
)
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

STEPS = 150
SEED = 3
KIND, PREFIX = "repartitioned", "life"
SETTINGS = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.num.standby.replicas": "1",
    "offsets.topic.num.partitions": "1",
}
STREAMS_KEY_TYPES = {17, 19, 20, 21, 22, 23}
STAY = Step("heartbeat", {"member": "ay", "epoch": ("known", 0), "owned": "told"}, 0)


def described(side: StreamsSide) -> Any:
    """The group as tools see it, before it has loaded too."""
    return side.take(Step("describe", {}, 0))["g"]


def lead_a_life(side: StreamsSide) -> Any:
    """Drawn requests; returns the group as it is then, with members of three processes."""
    chance = random.Random(SEED)
    steps = [Step("heartbeat", joining("pn", KIND, PREFIX), 0)]
    steps += [draw(chance, KIND, PREFIX) for _ in range(STEPS)]
    steps += [Step("heartbeat", joining(member, KIND, PREFIX), 0) for member in ("ay", "it", "mz")]
    for step in steps:
        answer = side.take(step)
        if step.kind == "heartbeat":
            side.wait_for_topics(missing_topics(answer, PREFIX))
    shown = described(side)
    assert sum(isinstance(each, dict) for each in shown.values()) > 2
    return shown


def test_streams_group_records_of_apache_are_loaded_and_reencoded_alike(tmp_path: Path) -> None:
    theirs = apache_4(tmp_path / "apache", SETTINGS)
    mine = ours(tmp_path / "ours", SETTINGS)
    try:
        client = started(theirs)
        side = StreamsSide(client, create_topics(client, by_java_hash=False))
        before = lead_a_life(side)
        client.close()
        theirs.stop()
        kinds = set()
        for key, value in stored(theirs.data_directory / OFFSETS / SEGMENT):
            record = records.decode(key, value)
            assert record is not None
            kinds.add(int.from_bytes(key[:2], "big"))
            assert records.encode_key(record) == key
            if int.from_bytes(key[:2], "big") in STREAMS_KEY_TYPES:
                assert records.encode_value(record) == value
        assert kinds >= STREAMS_KEY_TYPES
        for place in theirs.data_directory.glob("*-[0-9]"):
            shutil.copytree(place, mine.data_directory / place.name)
        client = started(mine)
        loaded = StreamsSide(client, side.topics, side.epochs, {}, side.tasks)
        assert _without_topology(described(loaded)) == _without_topology(before)
        answer = loaded.take(STAY)
        assert not answer["error_code"]
        assert described(loaded)["group_epoch"] == before["group_epoch"]  # the hash is the same
        assert described(loaded)["topology"] == before["topology"]
        client.close()
        mine.stop()
    finally:
        theirs.kill()
        mine.kill()


def test_our_streams_group_records_are_loaded_by_apache(tmp_path: Path) -> None:
    mine = ours(tmp_path / "ours", SETTINGS)
    theirs = apache_4(tmp_path / "apache", SETTINGS)
    try:
        client = started(mine)
        side = StreamsSide(client, create_topics(client, by_java_hash=False))
        before = lead_a_life(side)
        client.close()
        mine.kill()
        started(theirs).close()
        theirs.stop()
        place = theirs.data_directory / OFFSETS
        for old in (*place.glob("*.log"), *place.glob("*.index"), *place.glob("*.timeindex")):
            old.unlink()
        for old in (*place.glob("*.snapshot"), theirs.data_directory / ".kafka_cleanshutdown"):
            old.unlink(missing_ok=True)
        shutil.copy(mine.data_directory / OFFSETS / SEGMENT, place / SEGMENT)
        client = started(theirs)
        after = described(StreamsSide(client, {}))
        client.close()
        assert _without_topology(after) == _without_topology(before)  # it has no such topics
    finally:
        theirs.kill()
        mine.kill()


def _without_topology(shown: Any) -> Any:
    return {name: each for name, each in shown.items() if name != "topology"}
