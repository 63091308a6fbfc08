"""Work by the clock: when it is done, and that it gives way to clients."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.housekeeping import SLICE_MS, Housekeeping
from config.broker import BrokerConfig
from config.topic import TopicConfig
from storage.checkpoints import decode_offsets
from tests.storage.produced import NOW_MS, SMALL, TOPIC_ID, append, batch, crash, open_directories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from storage.directories import LogDirectories

LOGS = 6
CONFIG = dataclasses.replace(SMALL, retention_ms=1000, file_delete_delay_ms=3000)


class HandTimers:
    """Timers that the test turns by hand."""

    def __init__(self) -> None:
        self.series: list[tuple[float, Callable[[], object]]] = []
        self.once: list[tuple[float, Callable[[], object]]] = []
        self.next: list[Callable[[], object]] = []

    def every(self, interval_ms: float, callback: Callable[[], object]) -> HandTimers:
        self.series.append((interval_ms, callback))
        return self

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> HandTimers:
        self.once.append((delay_ms, callback))
        return self

    def soon(self, callback: Callable[[], object]) -> None:
        self.next.append(callback)

    def cancel(self) -> None:
        self.series.clear()
        self.once.clear()

    def run_every(self, interval_ms: float) -> None:
        """Let one interval pass."""
        for interval, callback in self.series:
            if interval == interval_ms:
                callback()

    def run_soon(self) -> bool:
        """Run what waits for the loop; tells whether there was anything."""
        waiting, self.next = self.next, []
        for callback in waiting:
            callback()
        return bool(waiting)


class SteppingClock:
    """Each look at it takes a while."""

    def __init__(self, step_ms: int) -> None:
        self.now = NOW_MS + 10**6
        self._step_ms = step_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        self.now += self._step_ms
        return self.now


class AtOnce:
    """An executor without threads."""

    def submit(self, work: Callable[..., object], *arguments: object) -> None:
        work(*arguments)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDirectories]:
    directories = open_directories(tmp_path)
    directories.load(lambda _: TopicConfig())
    for index in range(LOGS):
        log = directories.create("flights", index, TOPIC_ID, CONFIG, NOW_MS)
        for _ in range(3):
            append(log, batch(2))
    yield directories
    crash(directories)


def started(logs: LogDirectories, clock: SteppingClock, **keys: Any) -> HandTimers:
    timers = HandTimers()
    config = BrokerConfig(log_retention_check_interval_ms=77, **keys)
    Housekeeping(config, logs, clock, cast("Any", AtOnce())).start(cast("Any", timers))
    return timers


def starts(logs: LogDirectories) -> list[int]:
    return [log.log_start_offset for log in logs]


def test_retention_gives_way_after_each_slice(logs: LogDirectories) -> None:
    timers = started(logs, SteppingClock(step_ms=SLICE_MS))

    timers.run_every(77)
    slices = [starts(logs)]
    while timers.run_soon():
        slices.append(starts(logs))

    assert slices[0] == [6, 0, 0, 0, 0, 0]
    assert slices[-1] == [6] * LOGS
    assert len(slices) == LOGS + 1


def test_retention_does_not_begin_anew_before_it_has_ended(logs: LogDirectories) -> None:
    timers = started(logs, SteppingClock(step_ms=SLICE_MS))

    timers.run_every(77)
    timers.run_every(77)
    assert len(timers.next) == 1
    while timers.run_soon():
        pass
    timers.run_every(77)

    assert len(timers.next) == 1


def test_log_that_is_deleted_between_two_slices_is_passed_by(logs: LogDirectories) -> None:
    timers = started(logs, SteppingClock(step_ms=SLICE_MS))

    timers.run_every(77)
    logs.delete("flights", 3)
    while timers.run_soon():
        pass

    assert starts(logs) == [6] * (LOGS - 1)


def test_files_go_when_their_delay_is_over(logs: LogDirectories, tmp_path: Path) -> None:
    clock = SteppingClock(step_ms=0)
    timers = started(logs, clock)

    timers.run_every(77)
    deleted = len(list(tmp_path.glob("*/*.deleted")))
    clock.now += 2999
    timers.run_every(1000)
    assert len(list(tmp_path.glob("*/*.deleted"))) == deleted > 0
    clock.now += 1
    timers.run_every(1000)

    assert not list(tmp_path.glob("*/*.deleted"))


def test_retention_and_recovery_points_come_soon_after_the_start(
    logs: LogDirectories, tmp_path: Path
) -> None:
    timers = started(logs, SteppingClock(step_ms=0), log_initial_task_delay_ms=500)
    for log in logs:
        log.flush()

    assert {delay for delay, _ in timers.once} == {500}
    for _, callback in timers.once:
        callback()

    assert starts(logs) == [6] * LOGS
    noted = decode_offsets((tmp_path / "recovery-point-offset-checkpoint").read_bytes())
    assert noted == {("flights", index): 6 for index in range(LOGS)}
