"""Random commits in and out of transactions against a model of what must be visible.

After every step the shard, another that has loaded its log, and a third that has loaded the log as
compaction would leave it, show the same: the newest position in the log that is not part of an open
or aborted transaction, and which partitions have a pending one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coordinator.settings import GroupSettings
from protocol.errors import ErrorCode
from protocol.messages.consumer_offsets_records import GroupMetadataKey, OffsetCommitKey
from protocol.messages.offset_fetch import OffsetDeleteRequest
from tests.coordinator.harness import Harness

if TYPE_CHECKING:
    from tests.coordinator.harness import LogEntry

GROUPS = st.sampled_from(["a", "b"])
TOPICS = st.sampled_from(["x", "y"])
PARTITIONS = st.integers(0, 1)
PRODUCERS = st.integers(7, 9)
Place = tuple[str, str, int]
PLACES = [(group, topic, index) for group in "ab" for topic in "xy" for index in (0, 1)]


class PendingOffsetsMachine(RuleBasedStateMachine):
    """A shard, transactions of three producers, and the model."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness(GroupSettings(offsets_retention_ms=1_000))
        self.offset = 0
        self.stored: dict[Place, tuple[int, int]] = {}
        self.pending: dict[int, dict[Place, tuple[int, int]]] = {}

    @rule(group_id=GROUPS, topic=TOPICS, partition=PARTITIONS)
    def commit(self, group_id: str, topic: str, partition: int) -> None:
        self.offset += 1
        at = len(self.harness.log)
        code = self.harness.commit(self.offset, group_id=group_id, topic=topic, partition=partition)
        assert code is ErrorCode.NONE
        self.stored[group_id, topic, partition] = (at, self.offset)

    @rule(group_id=GROUPS, topic=TOPICS, partition=PARTITIONS, producer_id=PRODUCERS)
    def commit_in_transaction(
        self, group_id: str, topic: str, partition: int, producer_id: int
    ) -> None:
        self.offset += 1
        at = len(self.harness.log)
        code = self.harness.commit_in_transaction(
            self.offset,
            group_id=group_id,
            topic=topic,
            partition=partition,
            producer_id=producer_id,
        )
        assert code is ErrorCode.NONE
        positions = self.pending.setdefault(producer_id, {})
        positions[group_id, topic, partition] = (at, self.offset)

    @rule(producer_id=PRODUCERS, is_commit=st.booleans())
    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        self.harness.end_transaction(producer_id, is_commit=is_commit)
        for place, position in self.pending.pop(producer_id, {}).items():
            if is_commit:
                self.stored[place] = max(position, self.stored.get(place, position))

    @rule(group_id=GROUPS, topic=TOPICS, partition=PARTITIONS)
    def delete_offset(self, group_id: str, topic: str, partition: int) -> None:
        each = OffsetDeleteRequest.Topic.Partition(partition_index=partition)
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[OffsetDeleteRequest.Topic(name=topic, partitions=[each])],
        )
        _, records = self.harness.shard.handle_offset_delete(request)
        self.harness.append(records)
        self.forget({(group_id, topic, partition)})

    @rule(group_id=GROUPS)
    def delete_group(self, group_id: str) -> None:
        _, records = self.harness.shard.handle_delete_group(group_id)
        self.harness.append(records)
        self.forget({place for place in PLACES if place[0] == group_id})

    @rule(topic=TOPICS)
    def delete_topic(self, topic: str) -> None:
        for records in self.harness.shard.handle_topics_deleted([topic], self.harness.log_end):
            self.harness.append(records)
        self.forget({place for place in PLACES if place[1] == topic})

    @rule()
    def everything_expires(self) -> None:
        self.harness.advance(1_000)
        for group_id in list(self.harness.shard.group_ids):
            records = self.harness.shard.expire_offsets(group_id, self.harness.now_ms)
            self.harness.append(records)
        pending = self.pending_places()
        for place in self.stored.keys() - pending:
            del self.stored[place]

    @rule()
    def coordinator_moves(self) -> None:
        self.harness = self.harness.restarted()

    @invariant()
    def positions_are_as_the_model_says(self) -> None:
        for harness in (self.harness, self.harness.restarted(), self.compacted()):
            pending = self.pending_places()
            for group_id, topic, partition in PLACES:
                place = (group_id, topic, partition)
                _, expected = self.stored.get(place, (0, -1))
                found = harness.fetch(topic, partition, group_id)
                assert found.committed_offset == expected
                found = harness.fetch(topic, partition, group_id, require_stable=True)
                is_unstable = found.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
                assert is_unstable == (place in pending)

    @invariant()
    def groups_with_positions_exist(self) -> None:
        for group_id, _, _ in {*self.stored, *self.pending_places()}:
            assert self.harness.shard.find(group_id) is not None

    def forget(self, places: set[Place]) -> None:
        for place in places:
            self.stored.pop(place, None)
            for positions in self.pending.values():
                positions.pop(place, None)

    def pending_places(self) -> set[Place]:
        return {place for positions in self.pending.values() for place in positions}

    def compacted(self) -> Harness:
        """A shard that has loaded what is left when all up to the last stable offset is cleaned."""
        log = self.harness.log
        outcome = outcomes(log)
        stable = min(
            (entry.offset for entry in log if outcome.get(entry.offset, True) is None),
            default=len(log),
        )
        newest = {
            key(entry): entry.offset
            for entry in log
            if entry.offset < stable and entry.record and outcome.get(entry.offset, True)
        }
        other = Harness(self.harness.settings)
        for entry in log:
            is_kept = entry.record is None or newest.get(key(entry)) == entry.offset
            if entry.offset >= stable or is_kept:
                other.load(entry)
        return other


def outcomes(log: list[LogEntry]) -> dict[int, bool | None]:
    """Return, by offset, whether a record's transaction was committed; None while it is open."""
    found: dict[int, bool | None] = {}
    undecided: dict[int, list[int]] = {}
    for entry in log:
        if entry.record is None:
            for offset in undecided.pop(entry.producer_id, ()):
                found[offset] = entry.is_commit
        elif entry.producer_id >= 0:
            found[entry.offset] = None
            undecided.setdefault(entry.producer_id, []).append(entry.offset)
    return found


def key(entry: LogEntry) -> object:
    """Return the record's key for compaction."""
    assert entry.record is not None
    name = entry.record.key
    if isinstance(name, OffsetCommitKey):
        return name.group, name.topic, name.partition
    assert isinstance(name, GroupMetadataKey)
    return name.group


TestPendingOffsets = PendingOffsetsMachine.TestCase
TestPendingOffsets.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
