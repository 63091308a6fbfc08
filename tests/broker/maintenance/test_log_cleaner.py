"""Logs that the cleaner cleans while something is amiss with one of them."""

from __future__ import annotations

import asyncio
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.maintenance.log_cleaner import LogCleaner
from broker.runtime.clock import SystemClock
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from config.topic import TopicConfig
from protocol.records.builder import NewRecord, build_batch
from storage.errors import DamagedDelaysError
from tests.storage.compaction.compacting import keyed
from tests.storage.delays.test_log_delays import deliver
from tests.storage.produced import NOW_MS, SMALL, TOPIC_ID, append, open_directories
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.supervised import end, supervision

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

SECONDS = 60
COMPACTED = dataclasses.replace(
    SMALL, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01
)

pytestmark = pytest.mark.process


@pytest.fixture
def logs(tmp_path: Path) -> LogDirectories:
    """Directories with two logs in which one key is written again and again."""
    logs = open_directories(tmp_path)
    logs.load(lambda _: TopicConfig())
    for name in ("first", "second"):
        log = logs.create(name, 0, TOPIC_ID, COMPACTED, NOW_MS)
        for number in range(100):
            append(log, keyed([(b"key", b"%d" % number)]))
    return logs


def log_of(logs: LogDirectories, topic: str) -> Log:
    log = logs.get(topic, 0)
    assert log is not None
    return log


def clean_until(logs: LogDirectories, is_reached: Callable[[LogCleaner], bool]) -> LogCleaner:
    """Run the cleaner until the condition holds; return it in that state."""

    async def run() -> LogCleaner:
        supervising = supervision()
        timers = Timers(asyncio.get_running_loop())
        loop = BackgroundLoop(SystemClock(), timers, supervising.spawn, one_step_at_a_time)
        with ThreadPoolExecutor(1) as executor:
            config = BrokerConfig(log_cleaner_backoff_ms=1)
            cleaner = LogCleaner(config, logs, loop, executor, supervising)
            cleaner.start()
            async with asyncio.timeout(SECONDS):
                while not is_reached(cleaner):
                    await timers.sleep(2)
            await end(supervising)
        return cleaner

    return asyncio.run(run())


def test_leftovers_of_an_earlier_cleaning_are_removed_before_the_next(logs: LogDirectories) -> None:
    log = log_of(logs, "first")
    left = Path(log.path) / f"{7:020d}.log.cleaned"
    left.write_bytes(b"left")

    clean_until(logs, lambda cleaner: cleaner.counts.cleanings == 2)

    assert log.cleaned_offset > 0
    assert not left.exists()


def test_a_log_from_which_a_cleaned_file_cannot_be_removed_is_not_cleaned(
    logs: LogDirectories, caplog: pytest.LogCaptureFixture
) -> None:
    """A death in the next swap could be taken for one before that swap: see `segment_files`."""
    first, second = log_of(logs, "first"), log_of(logs, "second")
    before = first.segments.base_offsets.copy()
    (Path(first.path) / f"{7:020d}.log.cleaned").mkdir()

    clean_until(
        logs,
        lambda cleaner: cleaner.counts.cleanings == 1 and "retrying in" in caplog.text,
    )

    assert second.cleaned_offset > 0
    assert "compaction of first-0 failed, retrying in 60 s" in caplog.text
    assert (first.cleaned_offset, first.segments.base_offsets) == (-1, before)
    assert first.directory.failure is None


def test_logs_that_could_not_be_cleaned_are_forgotten_once_they_are_deleted(
    logs: LogDirectories, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, held = log_of(logs, "first"), log_of(logs, "second")
    Path(damaged.segments[0].path).write_bytes(bytes(damaged.segments[0].size))
    (Path(held.path) / f"{7:020d}.log.cleaned").mkdir()
    counted: set[int] = set()

    def both_were_deleted(cleaner: LogCleaner) -> bool:
        counted.add(cleaner.counts.uncleanable_logs)
        if cleaner.counts.uncleanable_logs and "retrying in" in caplog.text:
            logs.delete("first", 0)
            logs.delete("second", 0)
        return not (len(logs) or cleaner._uncleanable or cleaner._held_until_ms)

    cleaner = clean_until(logs, both_were_deleted)

    assert counted == {0, 1}
    assert cleaner.counts.uncleanable_logs == 0


def test_a_log_with_a_damaged_delay_index_is_cleaned_after_its_rebuild(
    logs: LogDirectories, caplog: pytest.LogCaptureFixture
) -> None:
    config = dataclasses.replace(COMPACTED, delivery_delay_enable=True)
    log = logs.create("letters", 0, TOPIC_ID, config, NOW_MS)
    headers = (("deliver-after", b"1m"),)
    for number in range(40):
        records = [NewRecord(NOW_MS, b"key", b"%d" % number, headers)]
        append(log, memoryview(build_batch(records)))
        deliver(log, 2 * number, 2 * number + 1)
    log.roll(NOW_MS)
    log.flush()
    expected = list(log.delays.entries_from(0))
    index = Path(f"{log.path}/{log.segments[-2].base_offset:020d}.delays")
    index.write_bytes(bytes(index.stat().st_size))

    first = clean_until(
        logs,
        lambda cleaner: cleaner.counts.cleanings == 2 and _is_mended(log, len(expected)),
    )
    assert first.counts.uncleanable_logs == 0
    assert "its delay index is made anew" in caplog.text
    assert list(log.delays.entries_from(0)) == expected

    clean_until(logs, lambda _: log.cleaned_offset > 0)
    assert len(list(log.delays.entries_from(0))) < len(expected)


def _is_mended(log: Log, count: int) -> bool:
    try:
        return len(list(log.delays.entries_from(0))) == count
    except DamagedDelaysError:
        return False
