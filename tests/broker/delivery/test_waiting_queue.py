"""The queue of what waits: in order, whatever is in files, and small in memory."""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from broker.delivery.waiting_queue import KEPT_SHARE, RunPlace, Waiting, WaitingQueue
from storage.filesystem import LocalFileSystem

if TYPE_CHECKING:
    from pathlib import Path

    from storage.filesystem import LocalFile

MOST_IN_HEAP = 4096
COUNT = 5 * MOST_IN_HEAP


class FullFileSystem(LocalFileSystem):
    """There is no room for another file."""

    has_room = False

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        if not self.has_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().replace(path, data, sync=sync)


class FailingFileSystem(LocalFileSystem):
    """Files cannot be read at times."""

    is_failing = False

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        if self.is_failing:
            raise OSError(errno.EMFILE, "it cannot be read")
        return super().open(path, create=create)


def queue_in(directory: Path, filesystem: LocalFileSystem | None = None) -> WaitingQueue[Waiting]:
    place = RunPlace(filesystem or LocalFileSystem(), str(directory), "delivery")
    return WaitingQueue(place, Waiting, MOST_IN_HEAP)


def drawn(count: int) -> list[Waiting]:
    random = Random(3)
    return [Waiting(random.randrange(10_000), number) for number in range(count)]


def drained(queue: WaitingQueue[Waiting]) -> list[Waiting]:
    taken = []
    while (head := queue.peek()) is not None:
        assert queue.pop() == head
        taken.append(head)
    return taken


def test_entries_come_in_order_though_most_are_in_files(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    entries = drawn(COUNT)
    for entry in entries:
        queue.push(entry)

    assert len(queue) == COUNT
    assert len(queue._heap) <= MOST_IN_HEAP
    assert len(list(tmp_path.iterdir())) >= 3
    assert queue.least_offset() == 0
    assert drained(queue) == sorted(entries)
    assert (len(queue), queue.least_offset()) == (0, None)
    assert not list(tmp_path.iterdir())


def test_entries_may_be_added_between_those_that_are_taken(tmp_path: Path) -> None:
    queue, random = queue_in(tmp_path), Random(4)
    held: list[Waiting] = []  # a heap, as the standard library has it
    for number in range(3 * MOST_IN_HEAP):
        entry = Waiting(random.randrange(number, number + 50_000), number)
        queue.push(entry)
        heapq.heappush(held, entry)
        if number % 3 == 0:
            assert queue.pop() == heapq.heappop(held)
    assert drained(queue) == sorted(held)


def test_close_removes_the_files(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    for entry in drawn(COUNT):
        queue.push(entry)

    queue.close()

    assert queue.peek() is None
    assert not list(tmp_path.iterdir())


def test_one_that_ends_late_leaves_the_files_of_the_next_alone(tmp_path: Path) -> None:
    """A broker that leads again at once may begin before what it did as leader has ended."""
    old, new = queue_in(tmp_path), queue_in(tmp_path)
    entries = drawn(COUNT)
    for entry in entries:
        old.push(Waiting(entry.due_ms + 1, entry.offset))
        new.push(entry)

    old.close()

    assert drained(new) == sorted(entries)
    assert list(tmp_path.iterdir()) == []


def test_without_room_for_files_all_is_kept_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = queue_in(tmp_path, FullFileSystem())
    entries = drawn(COUNT)
    for entry in entries:
        queue.push(entry)

    assert drained(queue) == sorted(entries)
    assert "cannot be written" in caplog.text


def test_runs_are_cut_so_that_the_heap_keeps_what_is_due_first(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    for entry in drawn(MOST_IN_HEAP + 1):
        queue.push(entry)

    assert len(queue._heap) == MOST_IN_HEAP // KEPT_SHARE


def test_a_run_that_cannot_be_read_now_loses_nothing(tmp_path: Path) -> None:
    filesystem = FailingFileSystem()
    queue = queue_in(tmp_path, filesystem)
    entries = drawn(COUNT)
    for entry in entries:
        queue.push(entry)
    taken = []
    filesystem.is_failing = True
    with contextlib.suppress(OSError):
        while True:
            taken.append(queue.pop())
    with pytest.raises(OSError, match="cannot be read"):
        queue.pop()
    filesystem.is_failing = False

    assert len(queue) == COUNT - len(taken)
    assert taken + drained(queue) == sorted(entries)


def test_memory_is_bounded_again_once_there_is_room_for_files(tmp_path: Path) -> None:
    filesystem = FullFileSystem()
    queue = queue_in(tmp_path, filesystem)
    for entry in drawn(MOST_IN_HEAP + 1):
        queue.push(entry)
    filesystem.has_room = True
    for entry in drawn(COUNT):
        queue.push(entry)

    assert len(queue._heap) <= MOST_IN_HEAP
