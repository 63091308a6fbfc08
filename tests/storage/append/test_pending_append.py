"""Appends of a follower that another thread writes: taken in whole, or not at all."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage.errors import LogDirectoryError
from storage.filesystem import LocalFile
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    all_offsets,
    append,
    batch,
    new_log,
    reopen_clean,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.wire import Buffer
    from storage.append.follower_appends import PendingAppend
    from storage.log.log import Log

COUNT = 5
SENT = b"".join(bytes(batch(1, offset=offset)) for offset in range(COUNT))


def begun(log: Log) -> PendingAppend:
    pending = log.begin_append_as_follower(SENT, NOW_MS)
    assert pending is not None
    return pending


def file_size(log: Log) -> int:
    return Path(log.segments.active.path).stat().st_size


def test_a_pending_append_counts_once_it_is_finished(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    pending = begun(log)
    pending.write.run()
    assert (log.log_end_offset, file_size(log)) == (0, len(SENT))

    assert log.finish_append_as_follower(pending)
    assert all_offsets(log) == list(range(COUNT))
    assert log.segments.active.size == len(SENT)
    assert not log.finish_append_as_follower(pending), "only once"


def test_batches_for_two_segments_or_damaged_ones_are_not_appended_pending(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    many = b"".join(bytes(batch(1, offset=offset)) for offset in range(50))
    assert len(many) > SMALL.segment_bytes
    assert log.begin_append_as_follower(many, NOW_MS) is None
    damaged = bytearray(SENT)
    damaged[-1] ^= 1
    assert log.begin_append_as_follower(bytes(damaged), NOW_MS) is None
    assert log.begin_append_as_follower(b"", NOW_MS) is None
    assert log.begin_append_as_follower(SENT, NOW_MS) is not None


def lead(log: Log) -> None:
    append(log, batch(1, value=b"its own"), epoch=1)


def follow_another(log: Log) -> None:
    log.append_as_follower(bytes(batch(1, value=b"another")), NOW_MS)


def roll(log: Log) -> None:
    lead(log)
    log.roll(NOW_MS)


def cut(log: Log) -> None:
    lead(log)
    log.truncate_to(0)


def begin_anew(log: Log) -> None:
    log.truncate_fully_and_start_at(7)


def begin_again(log: Log) -> None:
    begun(log)


CHANGES = (lead, follow_another, roll, cut, begin_anew, begin_again)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_pending_append_is_void_once_the_log_has_changed(
    tmp_path: Path, change: Callable[[Log], None], when: str
) -> None:
    log = new_log(tmp_path)
    pending = begun(log)
    if when == "after":
        pending.write.run()
    change(log)
    end, size = log.log_end_offset, log.segments.active.size
    pending.write.run()

    assert not log.finish_append_as_follower(pending)
    assert log.log_end_offset == end
    assert file_size(log) == size
    log.close()
    assert reopen_clean(tmp_path).log_end_offset == end


def test_a_log_that_is_closed_meanwhile_ends_where_it_ended(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(3))
    pending = log.begin_append_as_follower(bytes(batch(1, offset=3)), NOW_MS)
    assert pending is not None
    pending.write.run()
    size = log.segments.active.size
    assert file_size(log) > size
    log.close()

    assert file_size(log) == size
    assert all_offsets(reopen_clean(tmp_path)) == [0, 1, 2]


def test_changes_to_the_log_wait_for_a_pending_write_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(tmp_path)
    pending = begun(log)
    has_begun, may_end = threading.Event(), threading.Event()
    write_at = LocalFile.write_at

    def slow(file: LocalFile, position: int, data: Buffer) -> None:
        if threading.current_thread() is writer:
            has_begun.set()
            assert may_end.wait(60)
        write_at(file, position, data)

    monkeypatch.setattr(LocalFile, "write_at", slow)
    writer = threading.Thread(target=pending.write.run)
    writer.start()
    assert has_begun.wait(60)
    changer = threading.Thread(target=lead, args=(log,))
    changer.start()
    changer.join(0.05)
    assert changer.is_alive()
    may_end.set()
    changer.join(60)
    writer.join(60)

    assert not log.finish_append_as_follower(pending)
    assert all_offsets(log) == [0]
    assert file_size(log) == log.segments.active.size


def test_a_write_that_fails_takes_the_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(tmp_path)
    append(log, batch(3))
    size = file_size(log)
    pending = log.begin_append_as_follower(bytes(batch(1, offset=3)), NOW_MS)
    assert pending is not None
    write_at = LocalFile.write_at

    def half(file: LocalFile, position: int, data: Buffer) -> None:
        write_at(file, position, bytes(data)[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalFile, "write_at", half)
    pending.write.run()
    with pytest.raises(LogDirectoryError, match="No space left"):
        log.finish_append_as_follower(pending)
    assert (log.log_end_offset, file_size(log)) == (3, size)
