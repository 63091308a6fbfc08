"""Segments that get an index, and the handling of those that cannot."""

from __future__ import annotations

import asyncio
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.maintenance.key_indexer import KeyIndexer
from broker.runtime.clock import SystemClock
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from config.topic import TopicConfig
from protocol.records.builder import NewRecord, build_batch
from storage.key_index.placement import index_path, sound_indexes
from tests.storage.produced import NOW_MS, TOPIC_ID, append, open_directories
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.supervised import end, supervision
from tests.support.loop_watch import disk_in_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

SECONDS = 60
INDEXED = TopicConfig(segment_bytes=100_000, key_index_enable=True)
BATCHES = 40

pytestmark = pytest.mark.process


@pytest.fixture
def logs(tmp_path: Path) -> LogDirectories:
    """Directories with two logs of five segments."""
    logs = open_directories(tmp_path)
    logs.load(lambda _: TopicConfig())
    for name in ("first", "second"):
        fill(logs.create(name, 0, TOPIC_ID, INDEXED, NOW_MS))
    return logs


def fill(log: Log) -> None:
    for number in range(BATCHES):
        records = [NewRecord(NOW_MS, b"key-%d" % number, bytes(1000)) for _ in range(10)]
        with disk_in_place():
            append(log, memoryview(build_batch(records)))
    assert len(log.segments) >= 4


def log_of(logs: LogDirectories, topic: str) -> Log:
    log = logs.get(topic, 0)
    assert log is not None
    return log


def indexed(log: Log) -> set[int]:
    return {int(path.stem) for path in Path(log.path).glob("*.keyindex")}


def has_all(log: Log) -> bool:
    return indexed(log) == set(log.segments.base_offsets[:-1])


def is_sound(log: Log, base_offset: int) -> bool:
    return base_offset in sound_indexes(log, list(log.segments)[:-1])


def index_until(logs: LogDirectories, *steps: Callable[[KeyIndexer], bool]) -> KeyIndexer:
    """Run the indexer until each condition in turn was true."""

    async def run() -> KeyIndexer:
        supervising = supervision()
        timers = Timers(asyncio.get_running_loop())
        loop = BackgroundLoop(SystemClock(), timers, supervising.spawn, one_step_at_a_time)
        with ThreadPoolExecutor(1) as executor:
            config = dataclasses.replace(BrokerConfig(), key_index_check_interval_ms=1)
            indexer = KeyIndexer(config, lambda: logs, loop, executor, supervising)
            indexer.start()
            try:
                async with asyncio.timeout(SECONDS):
                    for step in steps:
                        while not step(indexer):
                            await timers.sleep(2)
            finally:
                await end(supervising)
        return indexer

    return asyncio.run(run())


def test_all_closed_segments_get_an_index_and_so_do_later_ones(logs: LogDirectories) -> None:
    first, second = log_of(logs, "first"), log_of(logs, "second")

    def more_was_appended(_: KeyIndexer) -> bool:
        fill(first)
        return True

    indexer = index_until(
        logs,
        lambda _: has_all(first) and has_all(second),
        more_was_appended,
        lambda one: has_all(first) and one.counts.waiting == 0,
    )

    closed = list(first.segments)[:-1]
    assert sorted(sound_indexes(first, closed)) == first.segments.base_offsets[:-1]
    assert indexer.counts.built == len(closed) + len(second.segments) - 1
    assert indexer.counts.bytes_written < 0.2 * indexer.counts.bytes_read


def test_an_existing_key_index_is_kept_if_sound_and_rebuilt_if_not(
    logs: LogDirectories,
) -> None:
    log = log_of(logs, "first")
    index_until(logs, lambda _: has_all(log))
    bases = log.segments.base_offsets
    damaged, kept = (Path(index_path(log.path, base)) for base in bases[:2])
    before = kept.stat().st_mtime_ns
    damaged.write_bytes(b"")

    indexer = index_until(logs, lambda _: is_sound(log, 0))

    assert kept.stat().st_mtime_ns == before
    assert indexer.counts.built >= 1


def test_damage_that_a_look_up_met_is_mended(logs: LogDirectories) -> None:
    log = log_of(logs, "first")
    path = Path(index_path(log.path, 0))

    def damage(indexer: KeyIndexer) -> bool:
        if not has_all(log) or indexer.counts.waiting:
            return False
        path.write_bytes(b"damaged")
        indexer.note_damage(log, 0)
        return True

    index_until(logs, damage, lambda _: is_sound(log, 0))


def test_a_segment_that_was_cut_is_indexed_when_it_is_closed_again(logs: LogDirectories) -> None:
    log = log_of(logs, "first")
    cut_at = log.segments.base_offsets[1] + 20

    def cut(_: KeyIndexer) -> bool:
        if not has_all(log):
            return False
        with disk_in_place():
            log.truncate_to(cut_at)
        assert indexed(log) == {0}
        fill(log)
        return True

    index_until(logs, cut, lambda one: has_all(log) and one.counts.waiting == 0)

    closed = list(log.segments)[:-1]
    assert len(sound_indexes(log, closed)) == len(closed)


def test_a_log_that_cannot_be_read_keeps_no_other_from_being_indexed(
    logs: LogDirectories, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = log_of(logs, "first"), log_of(logs, "second")
    damaged = Path(first.segments[0].path)
    damaged.write_bytes(bytes(damaged.stat().st_size))

    indexer = index_until(logs, lambda one: has_all(second) and one.counts.failed > 0)

    assert "key index of first-0 failed, retrying every 60 s" in caplog.text
    assert first.directory.failure is None
    assert 0 not in indexed(first)
    assert not list(Path(first.path).glob("*.tmp"))
    assert indexer.counts.failed


def test_a_topic_that_is_not_indexed_any_more_loses_its_indexes(logs: LogDirectories) -> None:
    log = log_of(logs, "first")

    def disable(_: KeyIndexer) -> bool:
        if has_all(log):
            log.config = dataclasses.replace(INDEXED, key_index_enable=False)
            return True
        return False

    index_until(logs, disable, lambda _: not indexed(log))


def test_a_log_that_is_deleted_is_forgotten(logs: LogDirectories) -> None:
    log = log_of(logs, "first")

    def delete(_: KeyIndexer) -> bool:
        if has_all(log):
            logs.delete("first", 0)
            return True
        return False

    indexer = index_until(logs, delete, lambda one: log not in one._known)

    assert log not in indexer._held_until_ms
