"""Time until a broker serves again after kill -9, with many partitions and much data.

`python -m tests.benchmarks.recovery` prints the rows alone; `make bench` has them too.

Both brokers get the same bytes: a topic is created on each, the broker is killed, and the files of
one model partition are copied into each partition's directory. The model is several segments of
1 MiB. What is past the recovery point checkpoint must be read again by whoever starts:

    tail    the active segments, as when a broker was killed in the midst of writing: all others
            were flushed in the background when they were rolled
    all     everything, as when it is killed before the first checkpoint

The files were just written, so they come out of the page cache for both.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from config.topic import TopicConfig
from protocol.records.builder import NewRecord, build_batch
from storage.directory.checkpoints import encode_offsets
from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_loader import create_log
from storage.log.log_settings import LogPlace, LogSettings
from tests.benchmarks.measurement import report
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import FreshTopic, Result
from tests.support.brokers.apache import apache_4
from tests.support.brokers.broker_process import BrokerError
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.brokers.broker_process import BrokerProcess

TOPIC = "recovered"
MEBIBYTE = 1 << 20
NOW_MS = 1_795_229_963_000
RECORD_BYTES = 1000
BATCH_RECORDS = 15
SEGMENT = TopicConfig(segment_bytes=MEBIBYTE)
ACTIVE_INDEX_SUFFIXES = (".index", ".timeindex")
CREATION_TIMEOUT_SECONDS = 60
RECOVERY_TIMEOUT_SECONDS = 600
FORGETFUL = {"broker.session.timeout.ms": "500", "broker.heartbeat.interval.ms": "100"}
"""Else Apache's controller makes its restarted broker wait until the killed one's session ends."""
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class Size:
    """Amount of data."""

    partitions: int = 1000
    segments: int = 5

    @property
    def text(self) -> str:
        """For the names of rows."""
        size = self.partitions * self.segments * MEBIBYTE / (1 << 30)
        return f"{size:.2g} GiB in {self.partitions:,} partitions"


FULL = Size()
SMOKE = Size(partitions=4, segments=2)


class RecoveryRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._size = size = SMOKE if is_smoke else FULL
        self.tail = RowReport(f"start after kill -9, {size.text}, tails unflushed", "s", "≤ 1.0")
        self.all = RowReport(f"start after kill -9, {size.text}, all unflushed", "s", "≤ 1.0")
        self.memory = RowReport("resident memory after that", "MB", "≤ 200 MB")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return [self.tail, self.all, self.memory]

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Build the data set for each make of broker, and kill and start it `rounds` times."""
        for make in makes:
            self._measure_make(make, directory, rounds)

    def _measure_make(self, make: str, directory: Path, rounds: int) -> None:
        broker = _build(make, directory / make)
        try:
            base_offset = _fill(broker, directory / "model", self._size)
            points = {(TOPIC, index): base_offset for index in range(self._size.partitions)}
            for _ in range(rounds):
                for row, offsets in ((self.tail, points), (self.all, {})):
                    path = broker.data_directory / RECOVERY_POINTS
                    path.write_bytes(encode_offsets(offsets))
                    broker.launch()
                    broker.wait_until_serving(RECOVERY_TIMEOUT_SECONDS)
                    row.results[make].append(
                        Result(broker.startup_seconds, cpu_seconds=broker.cpu_seconds())
                    )
                    resident = broker.peak_resident_bytes() / MEBIBYTE
                    self.memory.results[make].append(Result(resident))
                    broker.kill()
        finally:
            broker.kill()
            shutil.rmtree(directory / make, ignore_errors=True)


def _build(make: str, directory: Path) -> BrokerProcess:
    if make == APACHE:
        return apache_4(directory, FORGETFUL, as_its_script_does=True)
    return ours(directory)


def _fill(broker: BrokerProcess, model: Path, size: Size) -> int:
    """Give the killed `broker` its data; returns where the active segments begin."""
    broker.start()
    FreshTopic(broker, TOPIC, size.partitions).__enter__()
    targets = [broker.data_directory / f"{TOPIC}-{index}" for index in range(size.partitions)]
    _wait_for([target / "partition.metadata" for target in targets])
    broker.kill()
    base_offset = _write_model(model, size.segments)
    for target in targets:
        for path in target.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in (model / f"{TOPIC}-0").iterdir():
            shutil.copy(path, target)
    shutil.rmtree(model)
    return base_offset


def _wait_for(paths: list[Path]) -> None:
    """Apache's broker leads a partition a little before it has a directory for it."""
    deadline = time.monotonic() + CREATION_TIMEOUT_SECONDS
    while not all(path.exists() for path in paths):
        if time.monotonic() > deadline:
            raise BrokerError(f"there is no {paths[-1]} after {CREATION_TIMEOUT_SECONDS} s")
        time.sleep(0.1)


def _write_model(directory: Path, segments: int) -> int:
    """Write one partition with `segments` full segments; returns where the last begins."""
    place = LogPlace(LogDirectory(str(directory), Disk(LocalFileSystem())), TOPIC, 0)
    log = create_log(place, SEGMENT, LogSettings(), NOW_MS)
    records = [NewRecord(NOW_MS, None, os.urandom(RECORD_BYTES)) for _ in range(BATCH_RECORDS)]
    batch = build_batch(records)
    while len(log.segments) < segments or log.segments.active.size + len(batch) < MEBIBYTE:
        log.append_as_leader(memoryview(bytearray(batch)), 0, NOW_MS)
    base_offset = log.segments.active.base_offset
    log.flush()
    log.release()
    for suffix in ACTIVE_INDEX_SUFFIXES:  # sparse files of 10 MiB, which all must make anew
        (Path(log.path) / f"{base_offset:020d}{suffix}").unlink()
    return base_offset


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Measure what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(prog="recovery", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one round")
    parser.add_argument("--only", choices=(OURS, APACHE))
    options = parser.parse_args(arguments)
    rows = RecoveryRows(is_smoke=options.smoke)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        makes = (options.only,) if options.only else (OURS, APACHE)
        rows.measure(makes, Path(directory), 1 if options.smoke else options.rounds)
    report.show(rows.reports, Console(width=180), "Recovery")
    return rows.reports


if __name__ == "__main__":
    main()
