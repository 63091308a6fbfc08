"""Drawn histories that part: a replica's log becomes its leader's, and loses nothing committed.

In Raft an epoch has one leader, so two logs with the same record of it are the same up to that. A
history is therefore a shared beginning, of which some is committed, and two ends that have no epoch
in common.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.raft.destinations import Destinations
from controller.raft.effects import (
    AdvanceHighWatermark,
    Append,
    BeginSnapshot,
    Effect,
    Election,
    ExtendSnapshot,
    ReplaceLog,
    SaveElection,
    Truncate,
)
from controller.raft.log_view import LogView
from controller.raft.observer import Ask, Observer
from controller.raft.requests import Replica, RequestLimits
from protocol.metadata_log.snapshots import SnapshotId
from protocol.records.batch import iterate_headers
from protocol.uuids import ZERO_UUID
from tests.support.broker_parts.metadata_leader import CLUSTER, MetadataLeader, data_batch, feature

ADDRESS = ("leader", 1)
ENOUGH_EXCHANGES = 40


class History(NamedTuple):
    """Epochs of the records, by offset."""

    shared: list[int]
    own: list[int]
    leaders: list[int]
    committed: int
    compacted: int | None
    """First offset of the leader's log, if not 0."""


@st.composite
def histories(draw: st.DrawFn) -> History:
    shared = sorted(draw(st.lists(st.integers(1, 4), max_size=8)))
    least = shared[-1] if shared else 1
    epochs = set(range(least, 10))
    owned = draw(st.sets(st.sampled_from(sorted(epochs))))
    own = draw(_ascending(owned))
    leaders = draw(_ascending(epochs - owned))
    committed = draw(st.integers(0, len(shared)))
    compacted = draw(st.none() | st.integers(1, committed)) if committed else None
    return History(shared, own, leaders, committed, compacted)


def _ascending(epochs: set[int]) -> st.SearchStrategy[list[int]]:
    if not epochs:
        return st.just([])
    return st.lists(st.sampled_from(sorted(epochs)), max_size=6).map(sorted)


class ModelReplica:
    """A log of epochs on which effects are carried out."""

    def __init__(self, epochs: list[int], high_watermark: int) -> None:
        self.start = 0
        self.epochs = epochs
        self.high_watermark = high_watermark
        self.snapshot: SnapshotId | None = None

    @property
    def view(self) -> LogView:
        starts = []
        offset = self.start
        for epoch, group in groupby(self.epochs):
            starts.append((epoch, offset))
            offset += len(list(group))
        return LogView(offset, self.high_watermark, tuple(starts), self.snapshot)

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case Truncate(offset):
                assert offset >= self.high_watermark
                del self.epochs[offset - self.start :]
            case Append(records, leader_epoch):
                assert self.view.sound_prefix(records, leader_epoch) == (len(records), "")
                for _, header in iterate_headers(records):
                    self.epochs.append(header.partition_leader_epoch)
            case AdvanceHighWatermark(offset):
                self.high_watermark = max(self.high_watermark, offset)
            case ReplaceLog(snapshot_id):
                assert snapshot_id.end_offset >= self.high_watermark
                self.start, self.epochs = snapshot_id.end_offset, []
                self.snapshot, self.high_watermark = snapshot_id, snapshot_id.end_offset
            case BeginSnapshot() | ExtendSnapshot() | SaveElection():
                pass
            case other:
                raise AssertionError(other)


def leader_of(history: History) -> MetadataLeader:
    epochs = history.shared + history.leaders
    leader = MetadataLeader(epoch=10, addresses={1: ADDRESS})
    leader.batches = [
        data_batch([feature(f"{offset} {epoch}")], offset, epoch)
        for offset, epoch in enumerate(epochs)
    ]
    leader.high_watermark = history.committed
    if history.compacted is not None:
        leader.compact([feature("all")], history.compacted)
    return leader


@settings(max_examples=150, deadline=None)
@given(histories(), st.booleans())
def test_log_becomes_the_leaders_and_keeps_what_is_committed(
    history: History, knows_high_watermark: bool
) -> None:
    leader = leader_of(history)
    known = history.committed if knows_high_watermark else 0
    replica = ModelReplica(history.shared + history.own, known)
    destinations = Destinations([ADDRESS], 1, lambda _: 0)
    observer = Observer(
        Replica(CLUSTER, 5, ZERO_UUID), destinations, RequestLimits(), 2000, Election(10, 1)
    )
    now_ms = 0
    for _ in range(ENOUGH_EXCHANGES):
        view, now_ms = replica.view, now_ms + 2
        step = observer.next_request(view, now_ms)
        assert isinstance(step, Ask)
        response = leader.answer(step.request)
        effects = observer.answered(step, response, view, now_ms)  # type: ignore[arg-type]
        for effect in effects:
            replica.carry_out(effect)

    expected = history.shared + history.leaders
    assert replica.epochs == expected[replica.start :]
    assert replica.start + len(replica.epochs) == len(expected)
    assert replica.high_watermark == max(history.committed, replica.start)


def test_epoch_newer_than_all_ends_where_the_log_does() -> None:
    log = LogView(9, 0, ((2, 0), (4, 5)))
    assert log.end_of_epoch(7) == (4, 9)
    assert log.end_of_epoch(4) == (4, 9)
    assert log.end_of_epoch(3) == (2, 5)
    assert log.end_of_epoch(1) == (1, 0)
    assert LogView(9, 9, (), SnapshotId(9, 6)).end_of_epoch(3) == (6, 9)


def unsound(kind: str) -> bytes:
    """A batch that does not follow the one at offset 0, or not in epoch 1."""
    if kind == "gap":
        return data_batch([feature("b")], 2, 1)
    if kind == "later epoch":
        return data_batch([feature("b")], 1, 2)
    bad = bytearray(data_batch([feature("b")], 1, 1))
    bad[16] = 1
    return bytes(bad)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("gap", "offset 2, not 1"), ("later epoch", "epoch 2"), ("another format", "no record batch")],
)
def test_batches_before_one_that_is_not_sound_can_be_appended(kind: str, words: str) -> None:
    good = data_batch([feature("a")], 0, 1)
    length, problem = LogView(0, 0).sound_prefix(good + unsound(kind), 1)
    assert length == len(good)
    assert words in problem


def test_batch_that_is_cut_off_is_no_problem_and_not_appended() -> None:
    good, cut = data_batch([feature("a")], 0, 1), data_batch([feature("b")], 1, 1)[:-1]
    assert LogView(0, 0).sound_prefix(good + cut, 1) == (len(good), "")
