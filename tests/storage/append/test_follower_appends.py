"""Appending what the leader sent: as it is, in its segments, and nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.errors import ApiError, ErrorCode
from tests.storage.produced import NOW_MS, all_offsets, append, batch, new_log

if TYPE_CHECKING:
    from pathlib import Path


def test_follower_keeps_offsets_and_epochs_and_drops_a_cut_off_batch(tmp_path: Path) -> None:
    leader, follower = new_log(tmp_path / "1"), new_log(tmp_path / "2")
    for index in range(4):
        append(leader, batch(2), epoch=index // 2)
    data = leader.read(0, 10_000, 8).tobytes()

    info = follower.append_as_follower(data[:-1], NOW_MS)

    assert info is not None
    assert (info.first_offset, info.last_offset, follower.log_end_offset) == (0, 5, 6)
    assert follower.epochs.entries() == leader.epochs.entries() == [(0, 0), (1, 4)]
    assert follower.append_as_follower(data[-10:], NOW_MS) is None


def test_segments_of_a_follower_are_the_leaders_to_the_byte(tmp_path: Path) -> None:
    leader, follower = new_log(tmp_path / "1"), new_log(tmp_path / "2")
    for index in range(60):
        append(leader, batch(1 + index % 3, NOW_MS + index))
    while follower.log_end_offset < leader.log_end_offset:
        data = leader.read(follower.log_end_offset, 700, leader.log_end_offset).tobytes()
        assert follower.append_as_follower(data, NOW_MS) is not None
    leader.close()
    follower.close()

    names = sorted(path.name for path in (tmp_path / "1" / "flights-0").iterdir())
    assert len(names) > 10
    for name in names:
        ours = (tmp_path / "2" / "flights-0" / name).read_bytes()
        assert ours == (tmp_path / "1" / "flights-0" / name).read_bytes(), name


def test_follower_may_start_behind_a_gap(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append_as_follower(bytes(batch(2, offset=10)), NOW_MS)

    info = log.append_as_follower(bytes(batch(2, offset=20)), NOW_MS)

    assert info is not None
    assert all_offsets(log) == [10, 11, 20, 21]


def test_a_follower_refuses_duplicate_and_damaged_batches(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append_as_follower(bytes(batch(2)), NOW_MS)
    damaged = bytearray(bytes(batch(1, offset=2)) + bytes(batch(1, offset=3)))
    damaged[-1] ^= 1

    with pytest.raises(ApiError) as repeated:
        log.append_as_follower(bytes(batch(2)), NOW_MS)
    with pytest.raises(ApiError) as corrupt:
        log.append_as_follower(bytes(damaged), NOW_MS)

    assert repeated.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert corrupt.value.code == ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 3


def test_a_log_that_holds_nothing_may_begin_within_a_batch(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.truncate_fully_and_start_at(4)
    assert log.begins_within(bytes(batch(10))) == 0
    assert log.begins_within(bytes(batch(4))) is None  # it ends before
    assert log.begins_within(bytes(batch(2, offset=4))) is None
    assert log.begins_within(b"") is None
    log.append_as_follower(bytes(batch(2, offset=4)), NOW_MS)
    assert log.begins_within(bytes(batch(10))) is None
