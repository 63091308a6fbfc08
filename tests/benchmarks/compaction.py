"""Throughput of compaction, and its effect on a producer.

`python -m tests.benchmarks.compaction` prints the rows alone; `make bench` has them too.

Both brokers get the same bytes: topics are created, the broker is stopped, and each topic's only
partition gets a log that was written here. Every key comes twice, so half of the log goes.
Compaction begins when the topic's `min.cleanable.dirty.ratio` is lowered, and has ended when
`cleaner-offset-checkpoint` says so.

The producer sends one batch at a time at a steady rate, first to an idle broker, then while that
compacts. Latency counts from when a batch was due, so that one that comes late counts too. That
broker has nothing but this log: a virtual machine whose memory was just filled and freed may stand
still for tens of milliseconds while it gives pages back, whatever runs on it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console

from config.topic import TopicConfig
from protocol.messages.configs import IncrementalAlterConfigsRequest
from protocol.records.batch import CRC_POSITION, compute_crc
from protocol.records.builder import NewRecord, build_batch
from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_loader import create_log
from storage.log.log_settings import LogPlace, LogSettings
from tests.benchmarks.measurement import report
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import Result
from tests.benchmarks.measurement.watching import NOW_MS, STEADY, PeakMemory, SteadyProducer
from tests.support.brokers.apache import apache_4
from tests.support.brokers.broker_process import BrokerError
from tests.support.brokers.ours import ours
from tests.support.wire import RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from storage.log.log import Log
    from tests.support.brokers.broker_process import BrokerProcess

MEBIBYTE = 1 << 20
BATCH_BYTES = 16_000
KEY_DIGITS = 16
KEYS_APART = 2_654_435_761
"""A prime: multiples of it modulo any smaller count come in no order, and each once."""
PROPERTIES = {"log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "1000"}
ALTER_VERSION = 0
TOPIC_RESOURCE = 2
WAIT_SECONDS = 900.0
DISK = Disk(LocalFileSystem())
CRC = struct.Struct(">I")
OFFSET = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Size:
    """Amount of data to compact, and the load meanwhile."""

    log_bytes: int = 2 << 30
    small_records_bytes: int = 512 * MEBIBYTE
    segment_bytes: int = 128 * MEBIBYTE
    batches_per_second: int = 200
    quiet_seconds: float = 15.0

    @property
    def text(self) -> str:
        """For the names of rows."""
        return f"{self.log_bytes // MEBIBYTE} MiB"


FULL = Size()
SMOKE = Size(4 * MEBIBYTE, 4 * MEBIBYTE, MEBIBYTE, 100, 0.5)


class CompactionRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._size = size = SMOKE if is_smoke else FULL
        text = size.text
        self.large = RowReport(f"compaction of {text}, 1 KB records", "MB/s", "-")
        small_text = f"{size.small_records_bytes // MEBIBYTE} MiB"
        self.small = RowReport(f"compaction of {small_text}, 100 B records", "MB/s", "-")
        self.quiet = RowReport("produce 16 KB, 200/s, p99", "ms", "-")
        self.beside = RowReport(f"the same while it compacts {text}", "ms", "-")
        self.ratio = RowReport("the latter as a multiple of the former", "times", "≤ 1.5")
        self.memory = RowReport("resident memory while compacting, peak", "MB", "≤ 200 MB")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return [self.large, self.small, self.quiet, self.beside, self.ratio, self.memory]

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Fill a broker of each make and compact its topics, in turns, `rounds` times."""
        for _, make in product(range(rounds), makes):
            self._measure_once(make, directory)

    def _measure_once(self, make: str, directory: Path) -> None:
        size = self._size
        memory = PeakMemory()
        alone = {"beside": (1000, size.log_bytes)}
        with _filled(make, directory, alone, size) as broker, memory.of(broker):
            self._measure_latency(make, broker)
        logs = {"large": (1000, size.log_bytes), "small": (100, size.small_records_bytes)}
        with _filled(make, directory, logs, size) as broker, memory.of(broker):
            for topic, row in (("large", self.large), ("small", self.small)):
                before = memory.cpu_seconds()
                seconds = _compact(broker, topic)
                speed = logs[topic][1] / MEBIBYTE / seconds
                cpu_seconds = memory.cpu_seconds() - before
                row.results[make].append(Result(speed, cpu_seconds=cpu_seconds))
        self.memory.results[make].append(Result(memory.peak_bytes / MEBIBYTE))

    def _measure_latency(self, make: str, broker: BrokerProcess) -> None:
        size = self._size
        with SteadyProducer(broker.port, size.batches_per_second) as warm_up:
            time.sleep(size.quiet_seconds / 3)
        assert warm_up.latencies_ms
        with SteadyProducer(broker.port, size.batches_per_second) as quiet:
            time.sleep(size.quiet_seconds)
        with SteadyProducer(broker.port, size.batches_per_second) as beside:
            _compact(broker, "beside")
        self.quiet.results[make].append(Result(quiet.p99_ms))
        self.beside.results[make].append(Result(beside.p99_ms))
        self.ratio.results[make].append(Result(beside.p99_ms / quiet.p99_ms))


@contextmanager
def _filled(
    make: str, directory: Path, logs: dict[str, tuple[int, int]], size: Size
) -> Iterator[BrokerProcess]:
    """Run a broker that has topics of these logs, and wait for the disk first.

    Else the producer would wait for it, to take in what was just filled.
    """
    broker = _build(make, directory / make)
    try:
        _fill(broker, logs, size.segment_bytes)
        os.sync()
        broker.start()
        yield broker
    finally:
        broker.kill()
        shutil.rmtree(directory / make, ignore_errors=True)


def _build(make: str, directory: Path) -> BrokerProcess:
    if make == APACHE:
        return apache_4(directory, PROPERTIES, as_its_script_does=True)
    return ours(directory, PROPERTIES)


def _fill(broker: BrokerProcess, logs: dict[str, tuple[int, int]], segment_bytes: int) -> None:
    """Give the broker, which is stopped afterwards, topics of records and logs of these sizes."""
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "1.0",
        "segment.bytes": str(segment_bytes),
    }
    topics = [NewTopic(name, 1, 1, config=config) for name in logs]
    for created in admin.create_topics([*topics, NewTopic(STEADY, 1, 1)]).values():
        created.result(30)
    _wait_until(lambda: all(_directory(broker, name).exists() for name in logs))
    time.sleep(1)
    broker.stop()
    for name, sizes in logs.items():
        directory = _directory(broker, name)
        metadata = (directory / "partition.metadata").read_bytes()
        shutil.rmtree(directory)
        place = LogPlace(LogDirectory(str(broker.data_directory), DISK), name, 0)
        log = create_log(place, TopicConfig(segment_bytes=segment_bytes), LogSettings(), NOW_MS)
        _write(log, *sizes)
        (directory / "partition.metadata").write_bytes(metadata)


def _write(log: Log, record_bytes: int, log_bytes: int) -> None:
    """Fill a log with keys of which each comes twice."""
    count = max(1, BATCH_BYTES // (record_bytes + KEY_DIGITS + 8))
    keys = [b"%0*d" % (KEY_DIGITS, index) for index in range(count)]
    value = bytes(range(256)) * (record_bytes // 256 + 1)
    batch = build_batch([NewRecord(NOW_MS, key, value[:record_bytes]) for key in keys])
    places = [batch.index(key) for key in keys]
    total = log_bytes // len(batch)
    distinct = total * count // 2
    number = 0
    for _ in range(total):
        OFFSET.pack_into(batch, 0, log.log_end_offset)
        for at in places:
            batch[at : at + KEY_DIGITS] = b"%016d" % (number * KEYS_APART % distinct)
            number += 1
        CRC.pack_into(batch, CRC_POSITION, compute_crc(batch, 0, len(batch)))
        log.append_as_follower(batch, NOW_MS)
    log.roll(NOW_MS)
    log.close()


def _compact(broker: BrokerProcess, topic: str) -> float:
    """Let a topic be compacted; returns the seconds that it took."""
    begin = time.monotonic()
    _lower_ratio(broker, topic)
    checkpoint = broker.data_directory / "cleaner-offset-checkpoint"
    _wait_until(lambda: checkpoint.exists() and f"\n{topic} 0 " in checkpoint.read_text())
    return time.monotonic() - begin


def _lower_ratio(broker: BrokerProcess, topic: str) -> None:
    request = IncrementalAlterConfigsRequest
    resource = request.Resource
    config = resource.Config(name="min.cleanable.dirty.ratio", config_operation=0, value="0.1")
    wanted = request(
        resources=[resource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[config])],
        validate_only=False,
    )
    header = request_header(request.API_KEY, ALTER_VERSION)
    with RawConnection.open(broker.port, 30.0) as connection:
        connection.ask(header + wanted.encode(ALTER_VERSION))


def _directory(broker: BrokerProcess, topic: str) -> Path:
    return broker.data_directory / f"{topic}-0"


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise BrokerError(f"nothing happened for {WAIT_SECONDS} s")
        time.sleep(0.02)


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Measure what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(prog="compaction", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=(OURS, APACHE))
    options = parser.parse_args(arguments)
    rows = CompactionRows(is_smoke=options.smoke)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        makes = (options.only,) if options.only else (OURS, APACHE)
        rows.measure(makes, Path(directory), options.rounds)
    report.show(rows.reports, Console(width=180), "Compaction")
    return rows.reports


if __name__ == "__main__":
    main()
