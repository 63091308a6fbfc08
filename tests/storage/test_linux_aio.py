"""Many files synced with one call, where the system can, and one by one where it cannot."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from storage import linux_aio
from storage.filesystem import LocalFileSystem
from storage.linux_aio import FDSYNC, MOST_AT_ONCE, Syncs, sync_together

if TYPE_CHECKING:
    from pathlib import Path

    from storage.filesystem import LocalFile

needs_aio = pytest.mark.skipif(not linux_aio.is_available(), reason="no asynchronous I/O here")
MAPPED = "/proc/self/maps"
"""File that lists each context of this process, and of no other, as `[aio]`."""


@pytest.fixture
def files(tmp_path: Path) -> list[LocalFile]:
    opened = [LocalFileSystem().open(str(tmp_path / name), create=True) for name in "abc"]
    for file in opened:
        file.write_at(0, b"data")
    return opened


@pytest.fixture
def by_itself(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Descriptors of files that were waited for one by one."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    return synced


class Kernel:
    """System call stand-in: accepts so many at once, and reports the result of each."""

    def __init__(self, *taken: int, result: int = 0, error: OSError | None = None) -> None:
        self.taken = iter(taken)
        self.result = result
        self.error = error
        self.interrupted = 1
        self.blocks: list[Any] = []

    def call(self, number: int, *arguments: Any) -> int:
        calls = linux_aio._calls()
        if number == calls.setup:
            return 0
        if number == calls.submit:
            _, count, _ = arguments
            taken = next(self.taken, None)
            if taken is None:
                raise self.error or OSError(errno.EAGAIN, "planted")
            assert taken <= count
            return taken
        assert number == calls.getevents
        _, least, most, events, _ = arguments
        assert least == most
        if self.interrupted:
            self.interrupted -= 1
            raise InterruptedError
        for index in range(least):
            events[index].data = least - 1 - index
            events[index].result = self.result
        return least  # type: ignore[no-any-return]


@needs_aio
def test_files_are_waited_for_in_one_call(files: list[LocalFile], by_itself: list[int]) -> None:
    assert LocalFileSystem().sync_files(files) == [None] * 3
    assert by_itself == []


@needs_aio
def test_an_error_is_that_of_its_file(files: list[LocalFile]) -> None:
    reader, writer = os.pipe()
    try:
        descriptors = [files[0].fileno(), 1 << 20, files[1].fileno(), reader, files[2].fileno()]
        assert sync_together(descriptors) == [0, errno.EBADF, 0, errno.EINVAL, 0]
    finally:
        os.close(reader)
        os.close(writer)


@needs_aio
def test_more_files_than_fit_into_one_call(files: list[LocalFile]) -> None:
    descriptors = [files[number % 3].fileno() for number in range(2 * MOST_AT_ONCE + 5)]
    assert sync_together(descriptors) == [0] * len(descriptors)


@needs_aio
def test_a_threads_aio_context_is_released_with_it(files: list[LocalFile]) -> None:
    def in_use() -> int:
        with open(MAPPED, encoding="ascii") as maps:  # noqa: PTH123
            return sum("[aio]" in line for line in maps)

    before = in_use()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(sync_together, [file.fileno() for file in files]).result()
        assert in_use() == before + 1
    assert in_use() == before


def test_a_single_file_is_synced_without_aio(files: list[LocalFile], by_itself: list[int]) -> None:
    assert LocalFileSystem().sync_files(files[:1]) == [None]
    assert by_itself == [files[0].fileno()]


def test_a_file_of_another_kind_is_asked_itself(files: list[LocalFile]) -> None:
    class Sick(type(files[0])):  # type: ignore[misc]
        def sync(self) -> None:
            raise failure

    failure = OSError(errno.EIO, "planted")
    sick = Sick(os.dup(files[0].fileno()))
    assert LocalFileSystem().sync_files([files[1], sick]) == [None, failure]


def test_other_systems_wait_one_by_one(
    monkeypatch: pytest.MonkeyPatch, files: list[LocalFile], by_itself: list[int]
) -> None:
    monkeypatch.setattr(linux_aio, "is_available", lambda: False)
    filesystem = LocalFileSystem()
    assert not filesystem.syncs_together
    assert filesystem.sync_files(files) == [None] * 3
    assert by_itself == [file.fileno() for file in files]


@needs_aio
def test_checking_for_aio_creates_no_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(linux_aio, "Syncs")
    linux_aio.is_available.cache_clear()
    assert linux_aio.is_available()


def test_machine_whose_calls_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_aio, "NUMBERS", {})
    linux_aio.is_available.cache_clear()
    try:
        assert not linux_aio.is_available()
    finally:
        linux_aio.is_available.cache_clear()


@pytest.fixture
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_aio, "_calls", lambda: linux_aio.NUMBERS["x86_64"])


@pytest.mark.usefixtures("on_linux")
def test_files_that_the_kernel_does_not_accept_are_synced_one_by_one(
    monkeypatch: pytest.MonkeyPatch, by_itself: list[int]
) -> None:
    kernel = Kernel(2, 1)
    monkeypatch.setattr(linux_aio, "_call", kernel.call)

    assert Syncs().sync([11, 12, 13, 14, 15]) == [0] * 5

    assert by_itself == [14, 15]


@pytest.mark.usefixtures("on_linux")
def test_errors_come_with_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_aio, "_call", Kernel(2, result=-errno.EIO).call)
    assert Syncs().sync([11, 12]) == [errno.EIO] * 2


@needs_aio
def test_blocks_ask_for_the_data_alone() -> None:
    syncs = Syncs()
    assert {block.opcode for block in syncs._blocks} == {FDSYNC}
    assert [block.data for block in syncs._blocks] == list(range(MOST_AT_ONCE))
