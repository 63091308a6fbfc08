"""Records of share groups and their state, written by Apache Kafka or ours, read by the other."""

from __future__ import annotations

import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from coordinator import records
from coordinator.share_state import records as share_records
from protocol.messages.share_group_state import (
    ReadShareGroupStateRequest,
    ShareStateQuestion,
    WriteShareGroupStateRequest,
)
from protocol.messages.share_state_records import StoredBatch
from tests.interop.coordinators.share_groups.share_heartbeats import GROUP, TOPICS, Side, Step, draw
from tests.interop.coordinators.share_groups.test_share_groups_beside_apache import (
    SETTINGS,
    started,
    wait_until_coordinated,
)
from tests.interop.coordinators.test_consumer_group_logs import SEGMENT, stored
from tests.interop.security.principals import Principal
from tests.support import jars
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.tools import Tools

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


STEPS = 40
SEED = 3
WRITES = 60
OFFSETS = "__consumer_offsets-0"
STATE = "__share_group_state-0"
SHARE_KEY_TYPES = {10, 11, 12, 13, 14, 15}
MANY_SNAPSHOTS = {**SETTINGS, "share.coordinator.snapshot.update.records.per.snapshot": "3"}


def lead_a_life(side: Side) -> Any:
    """Drawn requests and changes of state; returns what is known of the group then."""
    chance = random.Random(SEED)
    for _ in range(STEPS):
        side.take(draw(chance))
    for member in "AB":
        joining = {"member": member, "epoch": 0, "ahead": 0, "topics": ["one", "two"]}
        side.take(Step("heartbeat", joining))
    for _ in range(WRITES):
        write(side, chance)
    return shown(side)


def write(side: Side, chance: random.Random) -> None:
    """Store a drawn change, as the leader of a partition does."""
    kind = WriteShareGroupStateRequest.Topic
    name = chance.choice(sorted(TOPICS))
    first = chance.randint(0, 50)
    batch = StoredBatch(
        first_offset=first,
        last_offset=first + chance.randint(0, 9),
        delivery_state=chance.choice((0, 2, 4)),
        delivery_count=chance.randint(1, 5),
    )
    index = chance.randrange(TOPICS[name])
    epochs = {each.partition: each.state_epoch for each in read(side, name)}
    change = kind.Partition(
        partition=index,
        state_epoch=epochs[index],
        leader_epoch=0,
        start_offset=chance.choice((-1, -1, first)),
        delivery_complete_count=chance.randint(0, 3),
        state_batches=[batch],
    )
    request = WriteShareGroupStateRequest(
        group_id=GROUP, topics=[kind(topic_id=side.topics[name], partitions=[change])]
    )
    [result] = side.asks.ask(request, 1).results
    assert not result.partitions[0].error_code, result


def shown(side: Side) -> Any:
    """The group as tools see it, and its state as leaders read it."""
    states = {name: sorted(map(state_of, read(side, name))) for name in TOPICS}
    return side.take(Step("describe", {})), side.take(Step("some_offsets", {})), states


def read(side: Side, name: str) -> list[Any]:
    """The state of a topic's partitions."""
    kind = ShareStateQuestion
    wanted = [kind.Partition(partition=each, leader_epoch=0) for each in range(TOPICS[name])]
    request = ReadShareGroupStateRequest(
        group_id=GROUP, topics=[kind(topic_id=side.topics[name], partitions=wanted)]
    )
    [result] = side.asks.ask(request, 0).results
    partitions: list[Any] = result.partitions
    return partitions


def state_of(partition: Any) -> Any:
    """Record by record: which neighbours are one range is up to each make."""
    spread = {
        offset: (batch.delivery_state, batch.delivery_count)
        for batch in partition.state_batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    return (
        *(partition.partition, partition.error_code, partition.state_epoch),
        *(partition.start_offset, sorted(spread.items())),
    )


def test_share_group_records_of_apache_are_loaded_and_reencoded_alike(tmp_path: Path) -> None:
    theirs = apache_4(tmp_path / "apache", MANY_SNAPSHOTS)
    mine = ours(tmp_path / "ours", MANY_SNAPSHOTS)
    try:
        side = started(theirs, by_java_hash=False)
        before = lead_a_life(side)
        side.asks.close()
        theirs.stop()
        kinds = set()
        for key, value in stored(theirs.data_directory / OFFSETS / SEGMENT):
            kinds.add(int.from_bytes(key[:2], "big"))
            record = records.decode(key, value)
            assert record is not None
            assert (records.encode_key(record), records.encode_value(record)) == (key, value)
        assert kinds >= SHARE_KEY_TYPES
        written = list(stored(theirs.data_directory / STATE / SEGMENT))
        assert {key[:2] for key, _ in written} == {b"\0\0", b"\0\1"}
        for key, value in written:
            state = share_records.decode(key, value)
            assert state is not None
            encoded = share_records.encode_key(state), share_records.encode_value(state)
            assert encoded == (key, value)
        for name in (OFFSETS, STATE, *(f"{t}-{i}" for t, n in TOPICS.items() for i in range(n))):
            shutil.copytree(theirs.data_directory / name, mine.data_directory / name)
        mine.start()
        loaded = Side(Principal(mine.port), side.topics, side.epochs)
        wait_until_coordinated(loaded)
        assert shown(loaded) == before
        stay = Step("heartbeat", {"member": "B", "epoch": 1, "ahead": 0, "topics": None})
        assert loaded.take(stay)[0] == 0
        loaded.asks.close()
        mine.stop()
    finally:
        theirs.kill()
        mine.kill()


def test_our_share_group_records_are_read_by_apaches_decoders(tmp_path: Path) -> None:
    mine = ours(tmp_path / "ours", MANY_SNAPSHOTS)
    tools = Tools(jars.KAFKA_4)
    try:
        side = started(mine, by_java_hash=False)
        lead_a_life(side)
        side.asks.close()
        mine.stop()
        for name, decoder in ((STATE, "share-group-state"), (OFFSETS, "offsets")):
            segment = mine.data_directory / name / SEGMENT
            dumped = tools.check("dump-log", f"--{decoder}-decoder", "--files", str(segment))
            payloads = [line.split("payload: ")[1] for line in dumped.lines if "payload: " in line]
            values = [json.loads(each) for each in payloads if each.startswith("{")]
            assert len(values) == sum(value is not None for _, value in stored(segment))
            assert all("data" in each for each in values)
    finally:
        tools.close()
        mine.kill()


@pytest.mark.slow
def test_our_share_group_records_are_loaded_by_apache(tmp_path: Path) -> None:
    mine = ours(tmp_path / "ours", MANY_SNAPSHOTS)
    theirs = apache_4(tmp_path / "apache", MANY_SNAPSHOTS)
    try:
        side = started(mine, by_java_hash=False)
        before = lead_a_life(side)
        side.asks.close()
        mine.stop()
        started(theirs, by_java_hash=False).asks.close()
        theirs.stop()
        place = theirs.data_directory / OFFSETS
        for old in (*place.glob("*.log"), *place.glob("*index"), *place.glob("*.snapshot")):
            old.unlink()
        (theirs.data_directory / ".kafka_cleanshutdown").unlink(missing_ok=True)
        shutil.copy(mine.data_directory / OFFSETS / SEGMENT, place / SEGMENT)
        theirs.start()
        after = Side(Principal(theirs.port), {})
        wait_until_coordinated(after)
        told = after.take(Step("describe", {}))
        after.asks.close()
        assert told[GROUP]["group"] == before[0][GROUP]["group"]
        members = {name: each[:4] for name, each in told[GROUP]["members"].items()}
        known = before[0][GROUP]["members"]
        assert members == {name: each[:4] for name, each in known.items()}  # it has no such topics
    finally:
        theirs.kill()
        mine.kill()
