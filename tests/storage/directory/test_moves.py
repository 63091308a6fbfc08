"""A replica that moves to another log directory: what is copied, and what ends a move."""

from __future__ import annotations

import dataclasses
import errno
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ApiError, ErrorCode
from storage.disk import Disk
from storage.segment import file_names
from tests.storage.directory.moving import (
    begin,
    contents,
    copy_all,
    filled,
    log_of,
    moved,
    opened,
)
from tests.storage.mortal import MortalFileSystem
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    all_offsets,
    append,
    batch,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_log_goes_on_in_the_other_directory_with_all_it_had(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = filled(logs)
    before = contents(log)
    reading = log.read(60, 1000, log.log_end_offset)
    data = reading.tobytes()

    begin(logs)
    moved(logs)

    assert log_of(logs) is log
    assert contents(log) == before
    assert log.directory is logs.directories[1]
    assert log.path == str(tmp_path / "b" / "flights-0")
    assert [path.name for path in tmp_path.glob("*/flights*")] == ["flights-0"]
    assert not (tmp_path / "b" / "flights-0" / file_names.MOVED).exists()
    assert reading.tobytes() == data, "it keeps its file open"
    append(log, batch(4), 3)
    log.truncate_to(log.log_end_offset - 2)
    append(log, batch(7), 4)
    now = contents(log)
    logs.close()
    again = opened(tmp_path)
    assert contents(log_of(again)) == now
    assert log_of(again).directory is again.directories[1]
    again.close()


def test_appends_truncations_and_deletions_during_a_move_are_copied(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = filled(logs)
    move = begin(logs)
    copy_all(move)
    log.truncate_to(120)
    log.assign_epoch(5, 120)
    for _ in range(12):
        append(log, batch(5), 5)
    log.advance_log_start_offset(70)
    before = contents(log)

    moved(logs)

    assert contents(log) == before
    logs.close()


def test_copy_that_is_behind_the_start_of_the_log_begins_there(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = filled(logs)
    begin(logs)
    log.truncate_fully_and_start_at(5000)
    append(log, batch(3), 9)
    before = contents(log)

    moved(logs)

    assert contents(log) == before
    logs.close()


def test_records_rewritten_during_a_move_replace_the_copied_ones(tmp_path: Path) -> None:
    """The log lost its tail, and another leader wrote others at the same offsets."""
    logs = opened(tmp_path)
    log = filled(logs)
    copy_all(begin(logs))
    end = log.log_end_offset
    log.truncate_to(150)
    for _ in range(10):
        append(log, batch(5, value=b"other"), 4)
    assert log.log_end_offset > end

    moved(logs)

    data = b"".join(bytes(one) for one in log.read_batches(150, log.log_end_offset))
    assert data.count(b"other") == 50
    logs.close()


def test_move_is_called_off_turned_elsewhere_and_gone_with_its_log(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    filled(logs)
    move = begin(logs)
    assert begin(logs) is move, "it was asked for twice"
    preparing = move.prepare()
    logs.move(log_of(logs), logs.directories[0], NOW_MS)
    assert len(logs.moves) == 0
    assert [path.name.rpartition("-")[2] for path in (tmp_path / "b").glob("flights*")] == [
        "delete"
    ]
    assert not preparing(), "on a thread meanwhile"
    assert logs.directories[1].failure is None

    begin(logs)
    logs.delete("flights", 0, NOW_MS)

    assert len(logs.moves) == 0
    assert {path.name.rpartition("-")[2] for path in tmp_path.glob("*/flights*")} == {"delete"}
    logs.close()


def failing(name: str) -> Callable[[MortalFileSystem], None]:
    def arm(filesystem: MortalFileSystem) -> None:
        rename = filesystem.rename

        def refuse(source: str, target: str) -> None:
            if target.endswith(name):
                raise OSError(errno.EIO, "bad disk")
            rename(source, target)

        filesystem.rename = refuse  # type: ignore[method-assign]

    return arm


def test_log_stays_where_it_is_if_the_other_disk_fails_in_the_last_step(tmp_path: Path) -> None:
    filesystem = MortalFileSystem()
    logs = opened(tmp_path, Disk(filesystem))
    log = filled(logs)
    before = contents(log)
    move = begin(logs)
    copy_all(move)
    assert move.prepare()()
    failing("/b/flights-0")(filesystem)

    with pytest.raises(ApiError):
        logs.end_move(move)

    assert log.directory is logs.directories[0]
    assert logs.directories[0].failure is None
    assert contents(log) == before
    append(log, batch(5), 3)
    logs.close()


def test_a_flush_begun_before_a_move_does_not_cover_the_moved_files(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = filled(logs)
    move = begin(logs)
    copy_all(move)
    assert move.prepare()()
    flushed = move.copy.recovery_point
    append(log, batch(5), 3)
    flush = log.flushes.start()
    assert move.take_rest(NOW_MS)

    logs.end_move(move)
    flush()

    assert log.recovery_point == flushed < log.log_end_offset
    logs.close()


def test_names_that_are_too_long_and_delayed_records_do_not_move(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    delayed = dataclasses.replace(SMALL, delivery_delay_enable=True)
    for name, config, code in [
        ("x" * 240, SMALL, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("delayed", delayed, ErrorCode.UNSUPPORTED_VERSION),
    ]:
        logs.want(name, 0, logs.directories[0])
        log = logs.create(name, 0, TOPIC_ID, config, NOW_MS)
        with pytest.raises(ApiError) as raised:
            logs.move(log, logs.directories[1], NOW_MS)
        assert raised.value.code == code
        logs.move(log, logs.directories[0], NOW_MS)
    logs.close()


def test_a_followers_pending_append_is_void_once_the_log_has_moved(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = filled(logs)
    move = begin(logs)
    copy_all(move)
    assert move.prepare()()
    end = log.log_end_offset
    data = batch(5, offset=end)
    pending = log.begin_append_as_follower(data, NOW_MS)
    assert pending is not None
    assert move.take_rest(NOW_MS)

    logs.end_move(move)
    pending.write.run()

    assert not log.finish_append_as_follower(pending)
    assert log.log_end_offset == end
    log.append_as_follower(data, NOW_MS)
    assert all_offsets(log)[-1] == end + 4
    logs.close()


def test_log_may_be_deleted_before_its_move_is_settled(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = filled(logs)
    move = begin(logs)
    copy_all(move)
    assert move.prepare()()
    old = logs.end_move(move)

    logs.delete("flights", 0, NOW_MS)
    move.settle()
    logs.remove_later(log, [old], NOW_MS)
    for path in logs.take_removals(NOW_MS + SMALL.file_delete_delay_ms):
        logs.remove(path)

    assert list(tmp_path.glob("*/flights*")) == []
    logs.close()
