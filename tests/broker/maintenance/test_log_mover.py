"""The mover at work: within its rate, beside appends, and past what fails."""

from __future__ import annotations

import asyncio
import errno
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from broker.maintenance.log_mover import LogMover
from broker.runtime.clock import SystemClock
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from config.topic import TopicConfig
from storage.log.log_settings import LogSettings
from tests.storage.produced import (
    NOW_MS,
    TOPIC_ID,
    all_offsets,
    append,
    batch,
    crash,
    open_directories,
)
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.supervised import end, supervision
from tests.support.loop_watch import disk_in_place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.runtime.supervision import Supervision
    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

SECONDS = 60
CONFIG = TopicConfig(segment_bytes=1 << 20)
VALUE = bytes(100_000)
BATCHES = 30
LOOKS = 50
DELETED = 7


@pytest.fixture
def logs(tmp_path: Path) -> LogDirectories:
    """Two directories; in the first, two logs of three megabytes."""
    settings = LogSettings(run_later=lambda _: None)  # sealed segments are not flushed
    logs = open_directories(tmp_path / "a", tmp_path / "b", settings=settings)
    logs.load(lambda _: CONFIG)
    for name in ("first", "second"):
        logs.want(name, 0, logs.directories[0])
        log = logs.create(name, 0, TOPIC_ID, CONFIG, NOW_MS)
        for _ in range(BATCHES):
            append(log, batch(value=VALUE))
    return logs


def begin(logs: LogDirectories, topic: str) -> Log:
    log = logs.get(topic, 0)
    assert log is not None
    logs.move(log, logs.directories[1], NOW_MS)
    return log


def move_until(
    logs: LogDirectories,
    is_reached: Callable[[LogMover], bool],
    config: BrokerConfig | None = None,
) -> Supervision:
    """Run the mover until the condition holds."""

    async def run() -> Supervision:
        supervising = supervision()
        timers = Timers(asyncio.get_running_loop())
        loop = BackgroundLoop(
            SystemClock(), timers, supervising.spawn, one_step_at_a_time, supervising.note
        )
        with ThreadPoolExecutor(2) as executor:
            mover = LogMover(config or BrokerConfig(), logs, loop, executor)
            supervising.keep("moves", mover.run)
            async with asyncio.timeout(SECONDS):
                while not is_reached(mover):
                    await timers.sleep(2)
            await end(supervising)
        return supervising

    return asyncio.run(run())


def test_logs_move_in_turn_while_records_are_appended(logs: LogDirectories) -> None:
    moving = [begin(logs, "first"), begin(logs, "second")]

    def append_more(mover: LogMover) -> bool:
        if mover.moved < 2:
            for log in moving:
                append(log, batch(value=VALUE))
        return mover.moved == 2

    supervising = move_until(logs, append_more)

    assert not supervising.failures
    for log in moving:
        assert log.directory is logs.directories[1]
        assert all_offsets(log) == list(range(log.log_end_offset))
        assert log.log_end_offset > BATCHES
    assert logs.take_removals(NOW_MS * 2)
    logs.close()


def test_rate_is_kept(logs: LogDirectories) -> None:
    begin(logs, "first")
    slow = BrokerConfig(replica_alter_log_dirs_io_max_bytes_per_second=1000)
    looks = []

    def look(_mover: LogMover) -> bool:
        (move,) = logs.moves
        looks.append(move.copy.log_end_offset)
        return len(looks) > 100

    move_until(logs, look, slow)

    assert looks[-1] == looks[-50] > 0, "a piece, and then it rests"
    assert looks[-1] < BATCHES


def test_log_that_is_being_compacted_is_waited_for(logs: LogDirectories) -> None:
    log = begin(logs, "first")
    begin(logs, "second")
    log.is_being_cleaned = True
    places: list[int] = []

    def look(mover: LogMover) -> bool:
        if mover.moved == 1:  # the other one does not wait
            places.append(logs.directories.index(log.directory))
            log.is_being_cleaned = len(places) < LOOKS
        return mover.moved == 2

    move_until(logs, look)

    assert places[:LOOKS] == [0] * LOOKS


def test_records_deleted_before_the_last_step_stay_deleted_after_a_crash(
    logs: LogDirectories,
) -> None:
    """DeleteRecords is answered once the start is on the disk: of the directory before the move."""
    log = begin(logs, "first")
    (move,) = logs.moves
    log.advance_high_watermark(log.log_end_offset)
    log.is_being_cleaned = True

    def delete(mover: LogMover) -> bool:
        if move.is_prepared and log.is_being_cleaned:
            log.advance_log_start_offset(DELETED)
            with disk_in_place():
                assert log.directory in logs.checkpoint_log_starts()
            log.is_being_cleaned = False
        return mover.moved == 1

    move_until(logs, delete)
    crash(logs)

    again = open_directories(*(directory.path for directory in logs.directories))
    again.load(lambda _: CONFIG)
    found = again.get("first", 0)
    assert found is not None
    assert found.directory is again.directories[1]
    assert found.log_start_offset == DELETED
    again.close()


@pytest.mark.parametrize("number", [0, 1])
def test_failed_directory_ends_its_moves_and_no_others(logs: LogDirectories, number: int) -> None:
    begin(logs, "first")
    logs.directories[number].fail(OSError(errno.EIO, "bad disk"))

    supervising = move_until(logs, lambda _: len(logs.moves) == 0)

    assert not supervising.failures


def test_damage_in_a_log_ends_its_move_alone(
    logs: LogDirectories, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = begin(logs, "first"), begin(logs, "second")
    segment = first.segments[0]
    segment.file.write_at(segment.size - 10, b"damage")

    move_until(logs, lambda _: len(logs.moves) == 0)

    assert first.directory is logs.directories[0]
    assert second.directory is logs.directories[1]
    assert "moving first-0 abandoned: the batch at offset 9 is damaged" in caplog.text


def test_an_unforeseen_error_ends_only_its_own_move(logs: LogDirectories) -> None:
    first, second = begin(logs, "first"), begin(logs, "second")
    (move, _) = logs.moves
    move.copy.follower_appends = None  # type: ignore[assignment]

    supervising = move_until(logs, lambda mover: mover.moved == 1 and len(logs.moves) == 0)

    assert sum(supervising.failures.values()) == 1
    assert first.directory is logs.directories[0]
    assert second.directory is logs.directories[1]


def test_log_in_which_records_may_wait_by_now_stays(logs: LogDirectories) -> None:
    """Delayed records are tracked in files beside the log, which its copy would not have."""
    log, other = begin(logs, "first"), begin(logs, "second")
    delaying = replace(CONFIG, delivery_delay_enable=True)

    def is_over(_: LogMover) -> bool:
        logs.configure(log, delaying)
        return not len(logs.moves)

    move_until(logs, is_over)

    assert log.directory is logs.directories[0]
    assert other.directory is logs.directories[1]
    append(log, batch())
