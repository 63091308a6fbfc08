"""Cost of one append and one look-up, without network: the floor under Produce and Fetch.

`python -m tests.benchmarks.log_append` prints microseconds of CPU per operation: for batches of
16 KB of different record sizes in one partition, and for small batches over 1,000 partitions.
"""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from config.topic import TopicConfig
from protocol.records.builder import NewRecord, build_batch
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_settings import LogSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.log.log import Log

NOW_MS = 1_795_229_963_000
TOPIC_ID = UUID(int=1)
CONFIG = TopicConfig()


class Cost(NamedTuple):
    """Microseconds of CPU per operation."""

    name: str
    append: float
    read_tail: float
    read_anywhere: float


def batches(count: int, records: int, size: int) -> list[bytearray]:
    """Batches of one idempotent producer."""
    return [
        build_batch(
            [NewRecord(NOW_MS, None, b"x" * size)] * records,
            producer_id=1,
            producer_epoch=0,
            base_sequence=index * records,
        )
        for index in range(count)
    ]


def measure_one_partition(directories: LogDirectories, size: int, count: int) -> Cost:
    """Batches of about 16 KB of records of `size` bytes."""
    records = 16_000 // (size + 8)
    log = directories.create(f"one-{size}", 0, TOPIC_ID, CONFIG, NOW_MS)
    prepared = batches(count, records, size)
    appended = _append([log], prepared)
    tail = log.log_end_offset - records
    return Cost(
        f"{size} B records, {len(prepared[0])} B batches",
        appended,
        _read(log, [tail] * count),
        _read(log, list(range(0, tail, max(1, tail // count)))),
    )


def measure_many_partitions(directories: LogDirectories, partitions: int, rounds: int) -> Cost:
    """One record of 100 bytes to each of many partitions in turn."""
    logs = [
        directories.create("many", index, TOPIC_ID, CONFIG, NOW_MS) for index in range(partitions)
    ]
    appended = sum(_append(logs, [data]) for data in batches(rounds, 1, 100)) / rounds
    tails = sum(_read(log, [log.log_end_offset - 1]) for log in logs) / len(logs)
    anywhere = sum(_read(log, [0]) for log in logs) / len(logs)
    return Cost(f"100 B batches over {partitions} partitions", appended, tails, anywhere)


def run(count: int, partitions: int) -> list[Cost]:
    """All measurements, in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory() as path:
        directories = LogDirectories.open([path], Disk(LocalFileSystem()), LogSettings())
        directories.identify(0, "benchmark", NOW_MS)
        costs = [measure_one_partition(directories, size, count) for size in (10, 100, 1000)]
        costs.append(measure_many_partitions(directories, partitions, 10))
        for log in directories:
            log.release()
        return costs


def _append(logs: Sequence[Log], prepared: Sequence[bytearray]) -> float:
    started = time.process_time()
    for data in prepared:
        for log in logs:
            data[:8] = bytes(8)
            log.append_as_leader(memoryview(data), 0, NOW_MS)
    return (time.process_time() - started) * 1e6 / (len(prepared) * len(logs))


def _read(log: Log, offsets: Sequence[int]) -> float:
    end = log.log_end_offset
    started = time.process_time()
    for offset in offsets:
        log.read(offset, 1 << 20, end)
    return (time.process_time() - started) * 1e6 / len(offsets)


if __name__ == "__main__":
    print(f"{'':40} {'append':>8} {'tail':>8} {'any':>8}  us")
    for cost in run(count=2000, partitions=1000):
        print(f"{cost.name:40} {cost.append:8.1f} {cost.read_tail:8.1f} {cost.read_anywhere:8.1f}")
