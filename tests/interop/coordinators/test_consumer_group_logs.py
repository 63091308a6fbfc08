"""Records of consumer groups, written by Apache Kafka 4 or ours, loaded by the other."""

from __future__ import annotations

import random
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from coordinator import records
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.records.batch import parse_header
from protocol.records.record import iterate_records
from tests.interop.coordinators.consumer_heartbeats import (
    REGEX_SECONDS,
    Side,
    Step,
    create_topics,
    draw,
)
from tests.interop.security.principals import Principal
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

STEPS = 150
SEED = 4
SETTINGS = {"group.consumer.assignment.interval.ms": "0", "offsets.topic.num.partitions": "1"}
OFFSETS = "__consumer_offsets-0"
SEGMENT = f"{0:020}.log"
CONSUMER_KEY_TYPES = {3, 5, 6, 7, 8, 16}
START_SECONDS = 60.0
LOADING = (14, 15, 16)
JOINING = {
    "epoch": 0,
    "owned": "none",
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["one"],
    "subscribed_topic_regex": "",
}
HEADER_BYTES = 61
PROBE = Step("fetch", {"member": None, "ahead": 0}, 9)


def started(process: BrokerProcess) -> Principal:
    """A client of a broker that coordinates the group."""
    process.start()
    client = Principal(process.port)
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    deadline = time.monotonic() + START_SECONDS
    while (
        client.ask(request, 4).coordinators[0].error_code
        or Side(client, {}).take(PROBE)[0] in LOADING
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return client


def described(side: Side) -> Any:
    """The group as tools see it, before it has loaded too."""
    return side.take(Step("describe", {}))["g"]


def lead_a_life(side: Side) -> Any:
    """Drawn requests; returns the group as it is then, with members.

    None subscribes by a regular expression any more: those are matched anew once they are loaded.
    """
    chance = random.Random(SEED)
    for _ in range(STEPS):
        step = draw(chance, "uniform")
        side.take(step)
        if "subscribed_topic_regex" in step.fields:
            time.sleep(REGEX_SECONDS)
    for name, each in described(side).items():
        if isinstance(each, dict) and each["regex"]:
            leaving = {"epoch": -1, "owned": "silent", "instance_id": each["instance_id"]}
            side.take(Step("heartbeat", {"member": name, **leaving}))
    for name in "AB":
        side.take(Step("heartbeat", {**JOINING, "member": name}))
    shown = described(side)
    assert sum(isinstance(each, dict) for each in shown.values()) > 1
    return shown


def stored(log: Path) -> Iterator[tuple[bytes, bytes | None]]:
    """The records of a segment."""
    data = memoryview(log.read_bytes())
    while len(data) > HEADER_BYTES:
        size = 12 + parse_header(data).batch_length
        if size <= 12:
            return
        for record in iterate_records(data[:size]):
            assert record.key is not None
            yield bytes(record.key), None if record.value is None else bytes(record.value)
        data = data[size:]


@pytest.mark.slow
def test_consumer_group_records_of_apache_are_loaded_and_reencoded_alike(tmp_path: Path) -> None:
    theirs = apache_4(tmp_path / "apache", SETTINGS)
    mine = ours(tmp_path / "ours", SETTINGS)
    try:
        client = started(theirs)
        side = Side(client, create_topics(client, by_java_hash=False))
        before = lead_a_life(side)
        client.close()
        theirs.stop()
        kinds = set()
        for key, value in stored(theirs.data_directory / OFFSETS / SEGMENT):
            record = records.decode(key, value)
            assert record is not None
            kinds.add(int.from_bytes(key[:2], "big"))
            assert records.encode_key(record) == key
            if int.from_bytes(key[:2], "big") in CONSUMER_KEY_TYPES:
                assert records.encode_value(record) == value
        assert kinds >= CONSUMER_KEY_TYPES
        for name in (OFFSETS, *(f"{t}-{i}" for t, n in (("one", 6), ("two", 4)) for i in range(n))):
            shutil.copytree(theirs.data_directory / name, mine.data_directory / name)
        client = started(mine)
        loaded = Side(client, side.topics, side.epochs, side.owned)
        assert described(loaded) == before
        stay = Step("heartbeat", {"member": "A", "epoch": ("known", 0), "owned": "told"})
        answer = loaded.take(stay)
        assert not answer["error_code"]
        assert described(loaded)["group_epoch"] == before["group_epoch"]  # the hash is the same
        client.close()
        mine.stop()
    finally:
        theirs.kill()
        mine.kill()


def test_our_consumer_group_records_are_loaded_by_apache(tmp_path: Path) -> None:
    mine = ours(tmp_path / "ours", SETTINGS)
    theirs = apache_4(tmp_path / "apache", SETTINGS)
    try:
        client = started(mine)
        side = Side(client, create_topics(client, by_java_hash=False))
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
        after = described(Side(client, {}))
        client.close()
        assert _without_topics(after) == _without_topics(before)  # it has no such topics
    finally:
        theirs.kill()
        mine.kill()


def _without_topics(shown: Any) -> Any:
    if not isinstance(shown, dict):
        return shown
    names = ("assignment", "target")
    return {name: _without_topics(each) for name, each in shown.items() if name not in names}
