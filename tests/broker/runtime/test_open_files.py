"""The division of a process's file descriptors, and the log lines when they run out."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from broker.network.connection_quotas import ConnectionQuotas
from broker.runtime.open_files import Limit, LoopErrors, OpenFiles, Shares, raise_limit, share_out
from broker.runtime.throttled_log import INTERVAL_MS
from storage.disk import INDEX_DESCRIPTORS, MAPPINGS_LIMIT
from storage.errors import ExhaustedError
from storage.filesystem import LocalFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS_DEFAULT = -1


class Clock:
    """Turned by hand."""

    def __init__(self) -> None:
        self.ms = 5

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


@pytest.mark.parametrize("limit", [64, 256, 1024, 4096, 20_000, 524_288, 1 << 30])
def test_files_kept_open_fit_into_the_descriptor_reserve(limit: int) -> None:
    shares = share_out(limit, KEYS_DEFAULT)

    kept = shares.files + INDEX_DESCRIPTORS * shares.indexes
    assert min(shares.files, shares.indexes) >= 4
    assert kept + min(64, limit // 4) <= shares.reserved <= limit // 2
    assert shares.indexes <= MAPPINGS_LIMIT


def test_two_thousand_clients_have_room_where_four_thousand_files_may_be_open() -> None:
    shares = share_out(4096, KEYS_DEFAULT)

    assert shares.limit - shares.reserved > 2500


@pytest.mark.skipif(not INDEX_DESCRIPTORS, reason="mappings hold no descriptors")
@pytest.mark.parametrize(
    ("reserved", "expected"),
    [
        (0, Shares(1000, 0, 4, 4)),
        (100, Shares(1000, 100, 34, 16)),
        (400, Shares(1000, 400, 224, 112)),
        (5000, Shares(1000, 1000, 624, 312)),
    ],
)
def test_the_reserve_can_be_set(reserved: int, expected: Shares) -> None:
    assert share_out(1000, reserved) == expected


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hard() -> Iterator[int]:
    """The hard limit of this process, whose soft one the test may change."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield limits[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_the_descriptor_limit_is_raised_to_the_hard_limit_and_logged(
    hard: int, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard - 7, hard))

    limits = [raise_limit(), raise_limit()]

    assert limits == [(hard - 7, hard), (hard, hard)]
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    OpenFiles(limits[0], KEYS_DEFAULT, clock).disk(LocalFileSystem())
    assert caplog.messages[0].startswith(f"open files: limit {hard}, {hard - 7} at start; ")


def test_a_limit_that_cannot_be_raised_is_used_as_it_is(
    hard: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard - 7, hard))

    def refuse(*_: object) -> NoReturn:
        raise ValueError("not allowed to raise maximum limit")

    with monkeypatch.context() as patch:
        patch.setattr(resource, "setrlimit", refuse)
        assert raise_limit() == (hard - 7, hard - 7)

    assert caplog.messages == [
        f"open files: the limit stays at {hard - 7}: not allowed to raise maximum limit"
    ]


@pytest.fixture
def in_use() -> Iterator[int]:
    """Open descriptors up to about so many; half a hundred are in use anyway."""
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(50)]
    yield max(held)
    for each in held:
        os.close(each)


def test_a_connection_is_refused_that_would_take_from_the_reserve(
    clock: Clock, in_use: int, caplog: pytest.LogCaptureFixture
) -> None:
    reserved = 1000
    roomy = OpenFiles(Limit(0, in_use + reserved + 20), reserved, clock)
    full = OpenFiles(Limit(0, in_use + reserved - 20), reserved, clock)
    limits = ConnectionQuotas(1, 1, {})

    limits.files = full
    assert [limits.admit("a") for _ in range(3)] == ["", "", ""]
    limits.files = roomy
    assert limits.admit("a") is None

    assert (roomy.refused_connections, full.refused_connections) == (0, 3)
    (line,) = caplog.messages
    assert line.startswith("connection refused: ")
    assert "reserved.file.descriptors" in line


def test_files_that_would_be_closed_for_others_do_not_count(clock: Clock, in_use: int) -> None:
    open_files = OpenFiles(Limit(0, in_use + 1000 - 20), 1000, clock)
    assert open_files.refusal() == ""
    disk = open_files.disk(LocalFileSystem())

    class Holder:
        was_used = False

        def release(self) -> None:
            """Do nothing: nothing is held."""

    for _ in range(60):
        disk.files.admit(Holder())

    assert open_files.refusal() is None


def test_no_connection_is_refused_without_a_limit(clock: Clock) -> None:
    assert OpenFiles(None, KEYS_DEFAULT, clock).refusal() is None


def test_a_line_a_minute_says_how_many_were_left_out(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    open_files = OpenFiles(None, KEYS_DEFAULT, clock)
    error = ExhaustedError("/data", "Too many open files")
    for _ in range(10):
        open_files.note_exhaustion(error)
    clock.ms += INTERVAL_MS
    open_files.note_exhaustion(error)

    assert open_files.exhaustions == 11
    said = "a request failed for now: log directory /data: Too many open files"
    assert caplog.messages == [said, f"{said} (9 more like this since the last line)"]


def test_asyncio_may_say_a_thousand_times_that_it_cannot_accept(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(LoopErrors(clock))
    error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    for _ in range(1000):
        context: dict[str, Any] = {
            "message": "socket.accept() out of system resource",
            "exception": error,
        }
        loop.call_exception_handler(context)
    assert caplog.messages == ["no connection can be accepted for a second: Too many open files"]

    loop.call_exception_handler({"message": "odd", "exception": ValueError("odd")})
    assert len(caplog.messages) == 2
    loop.close()
