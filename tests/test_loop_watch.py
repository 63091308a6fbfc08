"""Blocking of an event loop is detected, without the time that the machine itself took."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from storage.filesystem import LocalFile
from tests.support.loop_watch import (
    BASELINE_SECONDS,
    LIMIT_SECONDS,
    SYNCS,
    LoopWatch,
    _stalled,
    as_another_process,
    disk_in_place,
    waited_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_SECONDS = 3 * LIMIT_SECONDS
KNOWS_DELAYS = os.path.exists("/proc/self/schedstat")  # noqa: PTH110


def quiet() -> float:
    """The limit on a machine that is not busy."""
    return LIMIT_SECONDS


class Machine:
    """A clock that the test turns, and how long the process had to wait for a processor."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waited = 0.0
        self.watch = LoopWatch(lambda: self.waited, lambda: self.seconds, quiet)

    def take(self, seconds: float) -> None:
        """Work, or wait for something."""
        self.seconds += seconds

    def preempt(self, seconds: float) -> None:
        """Give the processor to others."""
        self.seconds += seconds
        self.waited += seconds

    def held_by(self, work: Callable[[], object]) -> list[str]:
        return held_by(work, self.watch)


def _call(work: Callable[[], object]) -> None:
    work()


def held_by(work: Callable[[], object], watch: LoopWatch) -> list[str]:
    """Return a watch's findings on work outside any loop, which the suite's own watch ignores."""
    watch.held = []
    watch.timed(_call)(work)
    return watch.held


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_blocking_is_found_on_a_real_clock() -> None:
    assert held_by(
        lambda: threading.Event().wait(LONG_SECONDS), LoopWatch(lambda: 0.0, limit=quiet)
    )


def test_computing_is_found_on_a_real_clock() -> None:
    assert held_by(lambda: compute(LONG_SECONDS), LoopWatch(lambda: 0.0, limit=quiet))


def test_only_callbacks_above_the_limit_are_reported() -> None:
    machine = Machine()
    assert not machine.held_by(lambda: machine.take(LIMIT_SECONDS * 0.9))
    assert machine.held_by(lambda: machine.take(LIMIT_SECONDS * 1.1))


def test_waiting_for_a_processor_is_taken_off() -> None:
    machine = Machine()
    assert not machine.held_by(lambda: machine.preempt(LONG_SECONDS))

    def be_preempted_and_work() -> None:
        machine.preempt(LONG_SECONDS)
        machine.take(LIMIT_SECONDS * 1.1)

    assert machine.held_by(be_preempted_and_work)


def test_time_lost_before_a_callback_is_not_subtracted() -> None:
    machine = Machine()
    assert not machine.held_by(lambda: None)
    machine.preempt(LONG_SECONDS)
    assert machine.held_by(lambda: machine.take(LONG_SECONDS))

    machine.take(BASELINE_SECONDS / 2)
    machine.preempt(BASELINE_SECONDS)
    assert machine.held_by(lambda: machine.take(LONG_SECONDS)), "but for a little"


def test_looking_for_garbage_cycles_is_taken_off() -> None:
    machine = Machine()

    def collect() -> None:
        look = gc.callbacks[-1]
        look("start", {})
        machine.take(LONG_SECONDS)
        look("stop", {})

    machine.watch.begin()
    try:
        assert not machine.held_by(collect)
    finally:
        machine.watch.end()


def test_functions_that_are_excused_are_taken_off_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    monkeypatch.setattr(LocalFile, "truncate", lambda _, seconds: machine.take(seconds))
    file = object.__new__(LocalFile)
    machine.watch.excuse()

    def truncate_and_work() -> None:
        file.truncate(5)
        machine.take(LIMIT_SECONDS * 1.1)

    try:
        assert not machine.held_by(lambda: file.truncate(5))
        assert machine.held_by(truncate_and_work)
    finally:
        machine.watch.count_again()
    assert machine.held_by(lambda: file.truncate(5))


def test_work_in_place_of_another_process_is_subtracted_and_nothing_else() -> None:
    watch = LoopWatch(lambda: 0.0, limit=quiet)

    def work(own_seconds: float) -> None:
        with as_another_process():
            with as_another_process():
                compute(LONG_SECONDS)
            compute(LONG_SECONDS)
        compute(own_seconds)

    assert not held_by(lambda: work(0), watch)
    assert held_by(lambda: work(LONG_SECONDS), watch)


def handle_of(name: str) -> SimpleNamespace:
    """A handle like one that wakes a task up."""

    async def stay() -> None:
        await asyncio.Event().wait()

    async def made() -> SimpleNamespace:
        task = asyncio.get_running_loop().create_task(stay(), name=name)
        return SimpleNamespace(_callback=task.cancel)

    return asyncio.run(made())


def test_a_task_is_named_with_what_it_runs() -> None:
    machine = Machine()
    machine.watch.timed(lambda _: machine.take(LONG_SECONDS))(handle_of("the one"))

    [line] = machine.watch.held
    assert "task the one, <coroutine object handle_of" in line


def test_a_loop_that_ends_may_wait_for_its_threads() -> None:
    machine = Machine()
    ending = asyncio.BaseEventLoop.shutdown_default_executor

    async def made() -> SimpleNamespace:
        loop = asyncio.get_running_loop()
        return SimpleNamespace(_callback=loop.create_task(ending(loop)).cancel)  # type: ignore[arg-type]

    handle = asyncio.run(made())
    run = machine.watch.timed(lambda _: machine.take(LONG_SECONDS))
    machine.watch.excuse()
    try:
        run(handle)
        assert not machine.watch.held
    finally:
        machine.watch.count_again()
    run(handle)
    assert machine.watch.held


@pytest.mark.skipif(not KNOWS_DELAYS, reason="this system does not say how long threads waited")
def test_a_thread_that_shares_its_processor_is_not_blamed() -> None:
    """The real thing: two other processes want the processor as well."""
    allowed = os.sched_getaffinity(0)
    endless = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(endless) for _ in range(2)]
    try:
        for pid in [0, *(other.pid for other in others)]:
            os.sched_setaffinity(pid, {min(allowed)})
        watch = LoopWatch(limit=quiet)
        before = waited_seconds()
        while waited_seconds() - before < 4 * LIMIT_SECONDS:
            assert not held_by(lambda: compute(LIMIT_SECONDS / 10), watch)
    finally:
        os.sched_setaffinity(0, allowed)
        for other in others:
            other.kill()
            other.wait()


def synced_on_a_loop(watch: LoopWatch) -> list[str]:
    """Return a watch's findings on a callback that waits for the disk."""
    sync = watch.telling(lambda: None)

    async def write() -> None:
        sync()

    asyncio.run(write())
    return watch.held


def test_waiting_for_the_disk_on_a_loop_is_found_however_fast_it_is() -> None:
    (held,) = synced_on_a_loop(LoopWatch())
    assert held.startswith("os.<lambda> on the event loop: write:"), "it says who called"


def test_waiting_for_the_disk_is_allowed_where_a_test_means_it_or_no_loop_runs() -> None:
    watch = LoopWatch()
    with disk_in_place():
        assert not synced_on_a_loop(watch)
    watch.telling(lambda: None)()
    assert not watch.held


def test_every_sync_call_is_wrapped_by_the_watch() -> None:
    for name in SYNCS:
        assert getattr(os, name).__qualname__ == name
        assert hasattr(getattr(os, name), "__wrapped__"), name


@pytest.mark.skipif(not os.path.exists("/proc/pressure/io"), reason="needs PSI")  # noqa: PTH110
def test_waiting_for_a_disk_is_read_in_seconds() -> None:
    before = _stalled("io")
    assert 0.0 <= before <= time.monotonic() * 2, "microseconds in the file"
    assert _stalled("io") >= before
    assert _stalled("nothing of this name") == 0.0
