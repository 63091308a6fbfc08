"""Share state that a shard stores, refuses and deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coordinator.share_state import records
from coordinator.share_state.records import ShareStateRecord, ShareUpdate
from coordinator.share_state.settings import ShareStateSettings
from coordinator.share_state.state import (
    NO_SUMMARY,
    ShareState,
    StateBatch,
    StateSummary,
    StoredState,
    is_coordinator_key,
)
from protocol.errors import ApiError, ErrorCode
from protocol.wire import DecodeError
from tests.coordinator.share_state.harness import Harness

if TYPE_CHECKING:
    from collections.abc import Callable


def refused(request: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        request()
    return caught.value.code


def test_changes_are_read_back_as_one_state() -> None:
    harness = Harness()
    harness.initialise(epoch=3)
    harness.write((10, 19, 0, 1), epochs=(3, 0), start=10)
    harness.write((12, 14, 2, 1), epochs=(3, 0), count=3)
    assert harness.read() == StoredState(
        3, 10, (StateBatch(10, 11, 0, 1), StateBatch(12, 14, 2, 1), StateBatch(15, 19, 0, 1))
    )
    assert harness.summary() == StateSummary(3, 0, 10, 3)
    assert harness.reloaded().find(harness.key()) == harness.shard.find(harness.key())


def test_nothing_is_written_or_read_before_it_is_initialised() -> None:
    harness = Harness()
    assert refused(harness.write) is ErrorCode.INVALID_REQUEST
    assert refused(harness.read) is ErrorCode.INVALID_REQUEST
    assert harness.summary() == NO_SUMMARY
    harness.delete()
    assert harness.log == []


def test_an_earlier_leader_is_refused_once_a_later_one_has_read() -> None:
    harness = Harness()
    harness.initialise()
    harness.write((0, 4, 0, 1), epochs=(1, 5), start=0)
    assert harness.read(6).start_offset == 0
    assert refused(lambda: harness.write(epochs=(1, 5))) is ErrorCode.FENCED_LEADER_EPOCH
    assert refused(lambda: harness.read(5)) is ErrorCode.FENCED_LEADER_EPOCH
    stored = len(harness.log)
    harness.read(6)
    assert len(harness.log) == stored, "an epoch that is known is not stored again"

    harness.shard = harness.reloaded()
    assert refused(lambda: harness.write(epochs=(1, 5))) is ErrorCode.FENCED_LEADER_EPOCH


def test_reinitialised_state_fences_the_earlier_state_epoch() -> None:
    harness = Harness()
    harness.initialise(epoch=1)
    harness.write((0, 4, 2, 1), epochs=(1, 7), start=0)
    harness.initialise(epoch=2, start=100)
    assert harness.read(7) == StoredState(2, 100, ())
    assert harness.summary() == StateSummary(2, 7, 100, 0)
    assert refused(lambda: harness.write(epochs=(1, 7))) is ErrorCode.FENCED_STATE_EPOCH
    assert refused(lambda: harness.initialise(epoch=1)) is ErrorCode.FENCED_STATE_EPOCH


def test_an_initialisation_that_comes_again_takes_nothing_back() -> None:
    harness = Harness()
    harness.initialise(epoch=2)
    harness.write((0, 4, 2, 1), epochs=(2, 0), start=0)
    stored = len(harness.log)
    harness.initialise(epoch=2)
    assert len(harness.log) == stored
    assert harness.read().batches == (StateBatch(0, 4, 2, 1),)
    harness.initialise(epoch=2, start=0)
    assert harness.read() == StoredState(2, 0, ()), "an administrator may want that"


def test_unknown_topics_and_partitions_are_refused_everywhere() -> None:
    harness = Harness()
    harness.initialise()
    for partition, code in (
        (-1, ErrorCode.INVALID_REQUEST),
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        assert refused(lambda: harness.initialise(partition=partition)) is code  # noqa: B023
        assert refused(lambda: harness.delete(partition=partition)) is code  # noqa: B023
        assert refused(lambda: harness.summary(partition=partition)) is code  # noqa: B023
    harness.topics.remove("t")
    assert refused(harness.write) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refused(harness.read) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refused(harness.initialise) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_negative_epochs_are_refused() -> None:
    harness = Harness()
    harness.initialise()
    assert refused(lambda: harness.initialise(epoch=-1)) is ErrorCode.INVALID_REQUEST
    assert refused(lambda: harness.read(-1)) is ErrorCode.INVALID_REQUEST
    assert refused(lambda: harness.write(epochs=(-1, 0))) is ErrorCode.INVALID_REQUEST
    assert refused(lambda: harness.write(epochs=(1, -1))) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("batch", [(4, 3, 0, 1), (-1, 3, 0, 1)])
def test_an_invalid_offset_range_is_refused(batch: tuple[int, int, int, int]) -> None:
    harness = Harness()
    harness.initialise()
    assert refused(lambda: harness.write(batch)) is ErrorCode.INVALID_REQUEST


def test_a_change_that_the_log_refuses_has_changed_nothing() -> None:
    harness = Harness()
    harness.initialise()
    before = harness.shard.find(harness.key())
    harness.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused(lambda: harness.write((0, 9, 2, 1))) is ErrorCode.NOT_COORDINATOR
    harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert refused(lambda: harness.write((0, 9, 2, 1))) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.shard.find(harness.key()) == before


def test_a_snapshot_is_stored_after_the_configured_updates() -> None:
    harness = Harness(ShareStateSettings(updates_per_snapshot=2))
    harness.initialise()
    for offset in range(6):
        harness.write((offset, offset, 2, 1))
    kinds = [int.from_bytes(key[:2], "big") for key, _ in harness.log]
    assert kinds == [0, 1, 1, 0, 1, 1, 0]
    state = harness.shard.find(harness.key())
    assert state is not None
    assert (state.snapshot_epoch, state.batches) == (2, (StateBatch(0, 5, 2, 1),))


def test_the_log_is_needed_from_the_oldest_snapshot_on() -> None:
    harness = Harness(ShareStateSettings(updates_per_snapshot=1))
    assert harness.shard.first_needed_offset == 0
    harness.initialise(partition=0)
    harness.initialise(partition=1)
    for offset in range(4):
        harness.write((offset, offset, 0, 1), partition=1)
    assert harness.shard.first_needed_offset == 0
    harness.initialise(partition=0, epoch=2)
    assert harness.shard.first_needed_offset == 5
    harness.prune()
    assert harness.reloaded().find(harness.key(1)) == harness.shard.find(harness.key(1))
    harness.delete(partition=0)
    harness.delete(partition=1)
    assert harness.shard.first_needed_offset == len(harness.log)
    assert not harness.reloaded().share_partitions


def test_old_snapshots_are_rewritten_only_if_the_log_can_be_pruned() -> None:
    harness = Harness()
    harness.initialise(partition=0)
    harness.now_ms += harness.settings.cold_snapshot_interval_ms
    harness.initialise(partition=1)
    for some in harness.shard.snapshot_cold(harness.now_ms):
        harness.append(some)
    state = harness.shard.find(harness.key(0))
    assert state is not None
    assert (state.snapshot_epoch, state.written_ms) == (1, harness.now_ms)
    assert state.created_ms < state.written_ms
    assert harness.shard.first_needed_offset == 1

    harness.now_ms += harness.settings.cold_snapshot_interval_ms
    assert list(harness.shard.snapshot_cold(harness.now_ms)) == []


def test_share_partitions_of_deleted_topics_are_forgotten() -> None:
    harness = Harness()
    harness.initialise(partition=0)
    harness.initialise(partition=1)
    for some in harness.shard.handle_topics_deleted({harness.topic_id}):
        harness.append(some)
    assert not harness.shard.share_partitions
    assert not harness.reloaded().share_partitions


def test_records_are_read_as_they_were_written() -> None:
    key = Harness().key()
    batch = StateBatch(7, 9, 4, 3)
    for value in (
        ShareState(4, 3, 2, 7, 1, (batch,), 10, 20),
        ShareUpdate(4, 2, -1, 1, (batch,)),
        None,
    ):
        record = ShareStateRecord(key, value)
        encoded = (records.encode_key(record), records.encode_value(record))
        assert records.decode(*encoded) == record
    assert records.decode(b"\x00\x07", b"") is None, "of a kind that is not known"
    for damaged in (b"\x00", records.encode_key(ShareStateRecord(key, None))[:9]):
        with pytest.raises(DecodeError):
            records.decode(damaged, None)
    update = records.encode_key(ShareStateRecord(key, ShareUpdate(0, 0, 0, 0, ())))
    with pytest.raises(DecodeError):
        records.decode(update, None)


@pytest.mark.parametrize(
    ("text", "is_key"),
    [
        (Harness().key().coordinator_key, True),
        ("a:b:" + Harness().key().coordinator_key, True),
        ("group:AAAAAAAAAAAAAAAAAAAAZA:x", False),
        ("group:short:0", False),
        (" :AAAAAAAAAAAAAAAAAAAAZA:0", False),
        ("group", False),
        ("", False),
    ],
)
def test_keys_of_share_partitions_are_known(text: str, is_key: bool) -> None:
    assert is_coordinator_key(text) is is_key
