"""The queue of delayed records: ordered despite its files, and small in memory."""

from __future__ import annotations

import contextlib
import errno
import heapq
import itertools
import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from broker.delivery.sorted_run import PAGE_ENTRIES, SORTED_AT_ONCE, sorted_pieces
from broker.delivery.waiting_queue import KEPT_SHARE, RunPlace, Waiting, WaitingQueue
from storage.filesystem import LocalFile, LocalFileSystem

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.wire import Buffer

MOST_IN_HEAP = 4096
ENTRY_BYTES = 8 * len(Waiting._fields)
COUNT = 5 * MOST_IN_HEAP


class FullFileSystem(LocalFileSystem):
    """File system without room for another file."""

    has_room = False

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        if create and not self.has_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().open(path, create=create)


class FailingFileSystem(LocalFileSystem):
    """Files cannot be read at times."""

    is_failing = False

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        if self.is_failing:
            raise OSError(errno.EMFILE, "it cannot be read")
        return super().open(path, create=create)


def queue_in(directory: Path, filesystem: LocalFileSystem | None = None) -> WaitingQueue[Waiting]:
    place = RunPlace(filesystem or LocalFileSystem(), str(directory), "delivery")
    return WaitingQueue(place, Waiting._make, MOST_IN_HEAP)


def push(queue: WaitingQueue[Waiting], entry: Waiting) -> None:
    queue.push(entry)
    if queue.is_full:
        for _ in queue.spill():
            pass


def drawn(count: int) -> list[Waiting]:
    random = Random(3)
    return [Waiting(random.randrange(10_000), number) for number in range(count)]


def drained(queue: WaitingQueue[Waiting]) -> list[Waiting]:
    taken = []
    while (head := queue.peek()) is not None:
        assert queue.pop() == head
        taken.append(head)
    return taken


def test_least_offset_is_tracked_without_a_search(tmp_path: Path) -> None:
    """One entry stays while ten thousand come and go: they are not remembered."""
    random = Random(5)
    queue = queue_in(tmp_path)
    queue.push(Waiting(10**9, 7))
    waiting = {7}
    for offset in range(8, 10_008):
        queue.push(Waiting(random.randrange(10_000), offset))
        waiting.add(offset)
        if offset % 2 or len(waiting) > 20:
            waiting.remove(queue.pop().offset)
            assert queue.least_offset() == min(waiting)
        assert len(queue._offsets) <= 2 * len(queue._heap) + PAGE_ENTRIES + 1


def test_entries_come_in_order_though_most_are_in_files(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    entries = drawn(COUNT)
    for entry in entries:
        push(queue, entry)

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
        push(queue, entry)
        heapq.heappush(held, entry)
        if number % 3 == 0:
            assert queue.pop() == heapq.heappop(held)
    assert drained(queue) == sorted(held)


def test_close_removes_the_files(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    for entry in drawn(COUNT):
        push(queue, entry)

    queue.close()

    assert queue.peek() is None
    assert not list(tmp_path.iterdir())


def test_a_queue_closed_late_keeps_the_files_of_its_successor(tmp_path: Path) -> None:
    """A broker that leads again at once may begin before what it did as leader has ended."""
    old, new = queue_in(tmp_path), queue_in(tmp_path)
    entries = drawn(COUNT)
    for entry in entries:
        push(old, Waiting(entry.due_ms + 1, entry.offset))
        push(new, entry)

    old.close()

    assert drained(new) == sorted(entries)
    assert list(tmp_path.iterdir()) == []


def test_without_room_for_files_all_is_kept_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = queue_in(tmp_path, FullFileSystem())
    entries = drawn(COUNT)
    for entry in entries:
        push(queue, entry)

    assert drained(queue) == sorted(entries)
    assert "cannot be written" in caplog.text


def test_spilled_runs_leave_the_earliest_entries_in_the_heap(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    for entry in drawn(MOST_IN_HEAP + 1):
        push(queue, entry)

    assert len(queue._heap) == MOST_IN_HEAP // KEPT_SHARE


def test_a_run_that_cannot_be_read_now_loses_nothing(tmp_path: Path) -> None:
    filesystem = FailingFileSystem()
    queue = queue_in(tmp_path, filesystem)
    entries = drawn(COUNT)
    for entry in entries:
        push(queue, entry)
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
        push(queue, entry)
    filesystem.has_room = True
    for entry in drawn(COUNT):
        push(queue, entry)

    assert len(queue._heap) <= MOST_IN_HEAP


@pytest.mark.parametrize("count", [0, 1, 2, SORTED_AT_ONCE, 5 * SORTED_AT_ONCE + 7])
@pytest.mark.parametrize("kind", ["random", "ascending", "descending", "one is ahead"])
def test_entries_are_sorted_in_short_pieces(count: int, kind: str) -> None:
    entries = sorted(drawn(count))
    if kind == "random":
        Random(1).shuffle(entries)
    elif kind == "descending":
        entries.reverse()
    elif kind == "one is ahead":
        entries = entries[count // 2 :] + entries[: count // 2]

    pieces = list(sorted_pieces(list(entries)))

    assert [entry for piece in pieces for entry in piece] == sorted(entries)
    assert max(map(len, pieces), default=0) <= SORTED_AT_ONCE


class WritingFileSystem(LocalFileSystem):
    """Notes how much is written at once."""

    def __init__(self) -> None:
        self.written: list[int] = []

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        file = super().open(path, create=create)
        if not create:
            return file
        noted = NotedFile(os.dup(file.fileno()))
        noted.written = self.written
        return noted


class NotedFile(LocalFile):
    __slots__ = ("written",)
    written: list[int]

    def write_at(self, position: int, data: Buffer) -> None:
        self.written.append(len(data))
        super().write_at(position, data)


def full_queue(directory: Path, filesystem: LocalFileSystem) -> WaitingQueue[Waiting]:
    """Return a queue with one entry more than may be in memory."""
    most = 16_384
    place = RunPlace(filesystem, str(directory), "delivery")
    queue = WaitingQueue(place, Waiting._make, most)
    for entry in drawn(most + 1):
        queue.push(entry)
    assert queue.is_full
    return queue


def test_a_step_of_spilling_sorts_writes_and_frees_no_more_than_it_may(tmp_path: Path) -> None:
    filesystem = WritingFileSystem()
    queue = full_queue(tmp_path, filesystem)
    count = len(queue)

    steps, sizes = 0, [len(queue._heap)]
    for _ in queue.spill():
        steps += 1
        sizes.append(len(queue._heap))

    assert max(filesystem.written) <= ENTRY_BYTES * SORTED_AT_ONCE
    assert sum(filesystem.written) == ENTRY_BYTES * (count - len(queue._heap))
    # Once to sort chunks, once at least to merge them, once to let go of what is in the file.
    assert steps >= 3 * (count // SORTED_AT_ONCE)
    assert len(set(sizes)) == 2, "until the end all is where it was"
    assert not queue.is_full


@pytest.mark.parametrize("per_step", [1, 300, 900, 16_000])
def test_entries_popped_during_a_spill_are_not_returned_again(
    tmp_path: Path, per_step: int
) -> None:
    queue = full_queue(tmp_path, LocalFileSystem())
    entries = sorted(queue._heap)
    taken: list[Waiting] = []
    for _ in queue.spill():
        taken += [queue.pop() for _ in range(min(per_step, len(queue)))]
        assert len(queue) == len(entries) - len(taken)
        assert queue.peek() == (entries[len(taken)] if len(taken) < len(entries) else None)

    assert taken + drained(queue) == entries
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("steps", [1, 5, 15, 40])
@pytest.mark.parametrize("is_given_up", [True, False])
def test_a_queue_that_is_closed_while_it_spills_leaves_no_file(
    tmp_path: Path, steps: int, *, is_given_up: bool
) -> None:
    queue = full_queue(tmp_path, LocalFileSystem())
    spilling = queue.spill()
    for _ in itertools.islice(spilling, steps):
        pass
    queue.close()
    if is_given_up:
        spilling.close()  # type: ignore[attr-defined]
    else:
        assert len(list(spilling)) < 20

    assert queue.peek() is None
    assert not list(tmp_path.iterdir())
