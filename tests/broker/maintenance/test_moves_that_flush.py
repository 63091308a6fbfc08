"""Moves of logs whose producers wait for the disk: `flush.messages`."""

from __future__ import annotations

import asyncio
import errno
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from broker.maintenance.log_mover import LogMover
from broker.partitions.durability import Durability
from broker.runtime.clock import SystemClock
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from storage.disk import Disk
from storage.log.log_settings import LogSettings
from tests.broker.maintenance.test_log_mover import CONFIG, SECONDS, begin
from tests.storage.log.test_flushes import CountedFileSystem
from tests.storage.produced import NOW_MS, TOPIC_ID, all_offsets, append, batch, open_directories
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.supervised import end, supervision

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

EACH = replace(CONFIG, flush_messages=1)
BATCHES = 3


class Noted:
    """Stands for the group commit: notes who is to be flushed, and whether that may begin."""

    def __init__(self) -> None:
        self.may_begin: list[bool] = []

    def add(self, log: Durability) -> None:
        self.may_begin.append(not log.is_under_way)


class Threads(Executor):
    """Threads before which the test may do something while flushes of the log are held."""

    def __init__(self, log: Log, while_held: Callable[[], bool]) -> None:
        """`while_held` returns whether the thread is to go on."""
        self._threads = ThreadPoolExecutor(1)
        self._log, self._while_held = log, while_held

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        if self._log.flushes.is_held and not self._while_held():
            return Future()
        return self._threads.submit(work, *arguments)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)


@pytest.fixture
def disk() -> CountedFileSystem:
    return CountedFileSystem()


@pytest.fixture
def logs(tmp_path: Path, disk: CountedFileSystem) -> LogDirectories:
    """Two directories, and a log in the first that is about to move to the second."""
    settings = LogSettings(run_later=lambda _: None)
    logs = open_directories(tmp_path / "a", tmp_path / "b", disk=Disk(disk), settings=settings)
    logs.load(lambda _: EACH)
    logs.want("first", 0, logs.directories[0])
    log = logs.create("first", 0, TOPIC_ID, EACH, NOW_MS)
    for _ in range(BATCHES):
        append(log, batch())
    begin(logs, "first")
    return logs


def moving(logs: LogDirectories) -> Log:
    log = logs.get("first", 0)
    assert log is not None
    return log


def move_until(
    logs: LogDirectories,
    is_reached: Callable[[LogMover], bool],
    while_held: Callable[[], bool] = lambda: True,
) -> None:
    """Run the mover until the condition holds; it must not wait for the disk on the loop."""

    async def run() -> None:
        supervising = supervision()
        timers = Timers(asyncio.get_running_loop())
        loop = BackgroundLoop(
            SystemClock(), timers, supervising.spawn, one_step_at_a_time, supervising.note
        )
        with Threads(moving(logs), while_held) as threads:
            mover = LogMover(BrokerConfig(), logs, loop, threads)
            supervising.keep("moves", mover.run)
            async with asyncio.timeout(SECONDS):
                while not is_reached(mover):
                    await timers.sleep(1)
            await end(supervising)
        assert not supervising.failures

    asyncio.run(run())


def has_moved(mover: LogMover) -> bool:
    return mover.moved == 1


def test_records_appended_while_the_copy_is_flushed_wait_for_their_own_flush(
    logs: LogDirectories, disk: CountedFileSystem
) -> None:
    log, noted = moving(logs), Noted()
    durability = Durability(log, noted, lambda _: None)

    def append_more() -> bool:
        append(log, batch())
        durability.flush_if_due()
        assert noted.may_begin == [False]
        disk.synced.clear()
        return True

    def is_reached(mover: LogMover) -> bool:
        return has_moved(mover) and len(noted.may_begin) > 1

    move_until(logs, is_reached, append_more)

    assert noted.may_begin == [False, True], "it is flushed once the log is the copy"
    assert disk.synced[0] == "00000000000000000000.log"
    assert log.directory is logs.directories[1]
    assert all_offsets(log) == list(range(BATCHES + 1))
    logs.close()


def test_a_flush_for_which_producers_waited_too_long_begins_again(logs: LogDirectories) -> None:
    log, places = moving(logs), []

    def let_go() -> bool:
        places.append(log.directory)
        if len(places) == 1:
            log.flushes.release()
            append(log, batch())
        return True

    move_until(logs, has_moved, let_go)

    assert places == [logs.directories[0]] * 2
    assert all_offsets(log) == list(range(BATCHES + 1))
    logs.close()


def test_a_disk_that_fails_then_lets_producers_go_on(logs: LogDirectories) -> None:
    log = moving(logs)

    def fail() -> bool:
        logs.directories[1].fail(OSError(errno.EIO, "bad disk"))
        return True

    move_until(logs, lambda _: not len(logs.moves) and not log.flushes.is_held, fail)

    assert log.directory is logs.directories[0]
    assert append(log, batch()).last_offset == BATCHES
    logs.close()


def test_a_move_that_is_called_off_then_lets_producers_go_on(logs: LogDirectories) -> None:
    log = moving(logs)

    def call_off() -> bool:
        logs.moves.call_off("first", 0, NOW_MS)
        return True

    move_until(logs, lambda _: not len(logs.moves) and not log.flushes.is_held, call_off)

    assert log.directory is logs.directories[0]
    logs.close()


def test_a_broker_that_stops_then_lets_producers_go_on(logs: LogDirectories) -> None:
    log, held = moving(logs), []

    def wait() -> bool:
        held.append(log.flushes.is_held)
        return False

    move_until(logs, lambda _: bool(held), wait)

    assert held == [True]
    assert not log.flushes.is_held
    logs.close()
