"""Work by the clock: when it is done, and that it gives way to clients."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.maintenance.housekeeping import Housekeeping
from broker.runtime.event_loop import BackgroundLoop
from config.broker import BrokerConfig
from config.topic import TopicConfig
from storage.directory.checkpoints import decode_offsets
from storage.disk import Disk
from storage.log.log import Log
from storage.log.log_settings import LogSettings
from tests.controller.harness import turns
from tests.storage.delays.test_log_delays import delayed
from tests.storage.exhaustion import ExhaustedFileSystem
from tests.storage.produced import NOW_MS, SMALL, TOPIC_ID, append, batch, crash, open_directories
from tests.support.broker_parts.disk_thread import DiskThread
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from storage.directory.directories import LogDirectories

LOGS = 6
RETENTION_MS = 77
CONFIG = dataclasses.replace(SMALL, retention_ms=1000, file_delete_delay_ms=3000)


class HandTimers:
    """Timers that the test turns by hand."""

    def __init__(self) -> None:
        self.series: list[tuple[float, Callable[[], object]]] = []
        self.once: list[tuple[float, Callable[[], object]]] = []

    def every(self, interval_ms: float, callback: Callable[[], object]) -> HandTimers:
        self.series.append((interval_ms, callback))
        return self

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> HandTimers:
        self.once.append((delay_ms, callback))
        return self

    def cancel(self) -> None:
        self.series.clear()
        self.once.clear()

    def run_every(self, interval_ms: float) -> None:
        """Let one interval pass."""
        for interval, callback in self.series:
            if interval == interval_ms:
                callback()


class Household:
    """Housekeeping on a clock and timers that the test turns; its tasks run on the loop."""

    def __init__(self, logs: LogDirectories, thread: DiskThread, **keys: Any) -> None:
        self._thread = thread
        self.now = NOW_MS + 10**6
        self.timers = HandTimers()
        self.tasks: list[asyncio.Task[None]] = []
        loop = BackgroundLoop(self, cast("Any", self.timers), self._spawn, one_step_at_a_time)
        config = BrokerConfig(log_retention_check_interval_ms=RETENTION_MS, **keys)
        Housekeeping(config, logs, loop, thread).start()

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    def _spawn(self, work: Coroutine[Any, Any, None], _: str) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def finish(self) -> None:
        """Run until all that was begun is done."""
        await asyncio.gather(*self.tasks)
        await asyncio.wrap_future(self._thread.submit(lambda: None))


@pytest.fixture
def thread() -> Iterator[DiskThread]:
    with DiskThread() as thread:
        yield thread


@pytest.fixture
def logs(tmp_path: Path, thread: DiskThread) -> Iterator[LogDirectories]:
    settings = LogSettings(run_later=thread.run_later)
    directories = open_directories(tmp_path, settings=settings)
    directories.load(lambda _: TopicConfig())
    for index in range(LOGS):
        log = directories.create("flights", index, TOPIC_ID, CONFIG, NOW_MS)
        for _ in range(3):
            append(log, batch(2))
    yield directories
    crash(directories)


def starts(logs: LogDirectories) -> list[int]:
    return [log.log_start_offset for log in logs]


def test_retention_gives_way_after_each_log(logs: LogDirectories, thread: DiskThread) -> None:
    async def scenario() -> None:
        household = Household(logs, thread)

        household.timers.run_every(RETENTION_MS)
        seen = [starts(logs)]
        while not household.tasks[0].done():
            await asyncio.sleep(0)  # noqa: TID251
            if seen[-1] != starts(logs):
                seen.append(starts(logs))

        assert seen == [[6] * done + [0] * (LOGS - done) for done in range(LOGS + 1)]

    asyncio.run(scenario())


def test_retention_does_not_start_again_during_a_pass(
    logs: LogDirectories, thread: DiskThread
) -> None:
    async def scenario() -> None:
        household = Household(logs, thread)

        household.timers.run_every(RETENTION_MS)
        household.timers.run_every(RETENTION_MS)
        assert len(household.tasks) == 1
        await household.finish()
        household.timers.run_every(RETENTION_MS)

        assert len(household.tasks) == 2
        await household.finish()

    asyncio.run(scenario())


def test_a_log_deleted_between_two_slices_is_skipped(
    logs: LogDirectories, thread: DiskThread
) -> None:
    async def scenario() -> None:
        household = Household(logs, thread)

        household.timers.run_every(RETENTION_MS)
        await turns(1)
        logs.delete("flights", 3)
        await household.finish()

        assert starts(logs) == [6] * (LOGS - 1)

    asyncio.run(scenario())


def files_to_go(directory: Path) -> list[Path]:
    return list(directory.glob("*/*.deleted"))


def test_files_go_when_their_delay_is_over(
    logs: LogDirectories, thread: DiskThread, tmp_path: Path
) -> None:
    async def scenario() -> None:
        household = Household(logs, thread)

        household.timers.run_every(RETENTION_MS)
        await household.finish()
        deleted = files_to_go(tmp_path)
        household.now += 2999
        household.timers.run_every(1000)
        await household.finish()
        assert files_to_go(tmp_path) == deleted != []
        household.now += 1
        household.timers.run_every(1000)
        await household.finish()

        assert not files_to_go(tmp_path)

    asyncio.run(scenario())


def test_files_are_deleted_one_by_one_despite_a_failure(
    logs: LogDirectories, thread: DiskThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk's threads would take all processors for as long as files of many megabytes go."""
    removed: list[str] = []
    remove = logs.remove

    def fail_at_first(path: str) -> None:
        removed.append(path)
        if len(removed) == 1:
            raise ValueError("planted")
        remove(path)

    async def scenario() -> None:
        household = Household(logs, thread)
        household.timers.run_every(RETENTION_MS)
        await household.finish()
        household.now += 3000
        monkeypatch.setattr(logs, "remove", fail_at_first)
        submitted: list[object] = []
        submit = thread.submit
        monkeypatch.setattr(thread, "submit", lambda *work: submitted.append(submit(*work)))
        household.timers.run_every(1000)
        monkeypatch.setattr(thread, "submit", submit)
        await household.finish()

        assert len(submitted) == 1
        assert len(removed) > LOGS
        assert [str(path) for path in files_to_go(tmp_path)] == removed[:1]

    asyncio.run(scenario())


def test_retention_and_recovery_points_come_soon_after_the_start(
    logs: LogDirectories, thread: DiskThread, tmp_path: Path
) -> None:
    for log in logs:
        log.flush()

    async def scenario() -> None:
        household = Household(logs, thread, log_initial_task_delay_ms=500)

        assert {delay for delay, _ in household.timers.once} == {500}
        for _, callback in household.timers.once:
            callback()
        await household.finish()

        assert starts(logs) == [6] * LOGS
        noted = decode_offsets((tmp_path / "recovery-point-offset-checkpoint").read_bytes())
        assert noted == {("flights", index): 6 for index in range(LOGS)}

    asyncio.run(scenario())


def test_a_log_that_fails_keeps_no_other_from_being_shortened(
    logs: LogDirectories, thread: DiskThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_expired = Log.delete_expired

    def fail_at_first(log: Log, now_ms: int) -> list[str]:
        if log.partition == 2:
            raise ValueError("odd")
        return delete_expired(log, now_ms)

    monkeypatch.setattr(Log, "delete_expired", fail_at_first)

    async def scenario() -> None:
        household = Household(logs, thread)

        household.timers.run_every(RETENTION_MS)
        await household.finish()

        assert starts(logs) == [0 if index == 2 else 6 for index in range(LOGS)]

    asyncio.run(scenario())


def test_unwritten_watermarks_are_written_later_although_unchanged(
    tmp_path: Path, thread: DiskThread
) -> None:
    filesystem = ExhaustedFileSystem()
    directories = open_directories(tmp_path, disk=Disk(filesystem))
    directories.load(lambda _: CONFIG)
    append(directories.create("flights", 0, TOPIC_ID, CONFIG, NOW_MS), batch(2))

    async def scenario() -> None:
        keys = {"replica_high_watermark_checkpoint_interval_ms": 11}
        household = Household(directories, thread, **keys)
        filesystem.run_out(0)
        household.timers.run_every(11)
        await household.finish()
        path = tmp_path / "replication-offset-checkpoint"
        assert not path.exists()

        household.timers.run_every(11)
        await household.finish()

        assert decode_offsets(path.read_bytes()) == {("flights", 0): 2}

    asyncio.run(scenario())
    crash(directories)


def test_watermarks_are_written_again_after_an_unforeseen_error(
    logs: LogDirectories,
    thread: DiskThread,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        keys = {"replica_high_watermark_checkpoint_interval_ms": 11}
        household = Household(logs, thread, **keys)
        with monkeypatch.context() as patch:
            patch.setattr(logs, "_checkpoints", None)
            household.timers.run_every(11)
            await household.finish()
        assert "housekeeping failed" in caplog.text

        household.timers.run_every(11)
        await household.finish()

        noted = decode_offsets((tmp_path / "replication-offset-checkpoint").read_bytes())
        assert noted == {("flights", index): 6 for index in range(LOGS)}

    asyncio.run(scenario())


def test_watermarks_of_other_logs_are_written_though_they_are_the_same_numbers(
    logs: LogDirectories, thread: DiskThread, tmp_path: Path
) -> None:
    async def scenario() -> None:
        keys = {"replica_high_watermark_checkpoint_interval_ms": 11}
        household = Household(logs, thread, **keys)
        household.timers.run_every(11)
        await household.finish()
        logs.delete("flights", LOGS - 1)
        append(logs.create("hotels", 0, TOPIC_ID, CONFIG, NOW_MS), batch(6))

        household.timers.run_every(11)
        await household.finish()

        noted = decode_offsets((tmp_path / "replication-offset-checkpoint").read_bytes())
        assert noted[("hotels", 0)] == 6
        assert len(noted) == LOGS

    asyncio.run(scenario())


def test_retention_has_a_damaged_delay_index_rebuilt_before_its_next_pass(
    logs: LogDirectories, thread: DiskThread, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that only follows has no other reader to meet the damage."""
    config = dataclasses.replace(CONFIG, delivery_delay_enable=True)
    log = logs.create("letters", 0, TOPIC_ID, config, NOW_MS)
    for _ in range(12):
        append(log, delayed(3, value=bytes(150)))
    waiting = log.delays.needed_from()
    others = list(log.delays.entries_from(0))
    index = next((tmp_path / "letters-0").glob("*.delays"))
    index.write_bytes(index.read_bytes()[:30])

    async def scenario() -> None:
        household = Household(logs, thread)

        household.timers.run_every(RETENTION_MS)
        await household.finish()
        assert starts(logs) == [6] * LOGS + [0], "the other logs are shortened"
        assert list(log.delays.entries_from(0)) == others
        assert "made anew" in caplog.text
        caplog.clear()
        household.timers.run_every(RETENTION_MS)
        await household.finish()

        assert caplog.text == ""
        assert log.delays.needed_from() == waiting

    asyncio.run(scenario())


def test_retention_logs_a_damaged_log_behind_a_delay_index(
    logs: LogDirectories, thread: DiskThread, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = dataclasses.replace(CONFIG, delivery_delay_enable=True)
    log = logs.create("letters", 0, TOPIC_ID, config, NOW_MS)
    for _ in range(12):
        append(log, delayed(3, value=bytes(150)))
    index = next((tmp_path / "letters-0").glob("*.delays"))
    index.write_bytes(b"")
    path = index.with_suffix(".log")
    path.write_bytes(path.read_bytes()[:16] + b"\x09" + path.read_bytes()[17:])

    async def scenario() -> None:
        household = Household(logs, thread)

        household.timers.run_every(RETENTION_MS)
        await household.finish()

        assert "retention skipped letters-0" in caplog.text
        assert starts(logs) == [6] * LOGS + [0]
        assert log.directory.failure is None
        assert not list(index.parent.glob("*.tmp"))

    asyncio.run(scenario())
