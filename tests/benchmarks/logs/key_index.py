"""Cost of building an index by key, and latency of look-ups in it.

`python -m tests.benchmarks.logs.key_index` prints the figures. A topic with `key.index.enable` gets
a log of 10 GiB that was written here, in segments of 1 GiB, and the broker indexes all but the
last. Then keys are looked up over HTTP, one after the other, such that there are and such that
there are not. Each key comes in one record. With `--segment-bytes 67108864` there are more
segments.

Apache Kafka has no such index, so it is not measured.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import statistics
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from config.topic import TopicConfig
from protocol.records.batch import CRC_POSITION, compute_crc
from protocol.records.builder import NewRecord, build_batch
from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.key_index.index_builder import BLOCK_BYTES
from storage.log.log_loader import create_log
from storage.log.log_settings import LogPlace, LogSettings
from tests.benchmarks.measurement.watching import NOW_MS
from tests.support.brokers.broker_process import BrokerError, free_port
from tests.support.brokers.ours import ours
from tests.support.processes.children import children_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.log.log import Log
    from tests.support.brokers.broker_process import BrokerProcess

TOPIC = "indexed"
MEBIBYTE = 1 << 20
BATCH_BYTES = 16_000
KEY_DIGITS = 16
KEYS_APART = 2_654_435_761
RATE = 50_000_000
"""Bytes per second of which a processor's share is told."""
WAIT_SECONDS = 1800.0
TICKS = os.sysconf("SC_CLK_TCK")
CRC = struct.Struct(">I")
OFFSET = struct.Struct(">q")
DISK = Disk(LocalFileSystem())


@dataclass(frozen=True, slots=True)
class Size:
    """Amount of data to index, and number of look-ups."""

    log_bytes: int = 10 << 30
    segment_bytes: int = 1 << 30
    record_bytes: int = 1000
    lookups: int = 200


FULL = Size()
SMOKE = Size(4 * MEBIBYTE, MEBIBYTE, lookups=5)


@dataclass(frozen=True, slots=True)
class Figures:
    """Measurements."""

    log_bytes: int
    """Of the closed segments."""
    index_bytes: int
    build_seconds: float
    build_cpu_seconds: float
    hits_ms: list[float]
    misses_ms: list[float]
    bytes_per_hit: float

    @property
    def lines(self) -> list[str]:
        """For who reads them."""
        share = self.build_cpu_seconds * RATE / self.log_bytes
        text = []
        for name, times in (("a key", self.hits_ms), ("no such key", self.misses_ms)):
            ordered = sorted(times)
            text.append(
                f"look-up of {name:12} median {statistics.median(times):.1f} ms, "
                f"p99 {ordered[int(0.99 * len(ordered))]:.1f} ms, max {ordered[-1]:.1f} ms"
            )
        return [
            f"indexed segments        {self.log_bytes / MEBIBYTE:,.0f} MiB",
            f"index                   {100 * self.index_bytes / self.log_bytes:.2f} % of that",
            f"built in                {self.build_seconds:.1f} s",
            f"CPU                     {self.build_cpu_seconds:.1f} s",
            f"at 50 MB/s              {100 * share:.1f} % of a core",
            *text,
            f"read of the log per hit {self.bytes_per_hit / 1024:,.0f} KiB",
        ]


class _Client:
    def __init__(self, port: int) -> None:
        self._port = port

    def find(self, key: str) -> tuple[dict[str, Any], float]:
        """The answer, and the milliseconds that it took."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=WAIT_SECONDS)
        begin = time.perf_counter()
        # The active segment is not indexed; what is measured ends before it.
        connection.request("GET", f"/records?topic={TOPIC}&key={key}&limit=1")
        answer = connection.getresponse()
        body = answer.read()
        took_ms = (time.perf_counter() - begin) * 1000
        connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise BrokerError(body.decode())
        found: dict[str, Any] = json.loads(body)
        return found, took_ms


def measure(size: Size, directory: Path) -> Figures:
    """Fill a broker, have it index, and look up."""
    port = free_port()
    properties = {"key.index.port": str(port), "key.index.check.interval.ms": "100"}
    broker = ours(directory, properties)
    try:
        count = _fill(broker, size)
        log = broker.data_directory / f"{TOPIC}-0"
        os.sync()
        broker.start()
        begin = time.monotonic()
        build_seconds, cpu_seconds = _wait_until_indexed(broker, log, begin)
        closed = _indexable(log)
        client = _Client(port)
        hits, misses, read = [], [], 0
        for number in range(size.lookups):
            wanted = f"{number * (count // size.lookups) * KEYS_APART % count:0{KEY_DIGITS}d}"
            found, took_ms = client.find(wanted)
            if len(found["records"]) != 1:
                raise BrokerError(f"key {wanted}: {found}")
            hits.append(took_ms)
            read += found["bytes_read"]
            misses.append(client.find(f"none-{number}")[1])
        return Figures(
            sum(path.stat().st_size for path in closed),
            sum(path.stat().st_size for path in log.glob("*.keyindex")),
            build_seconds,
            cpu_seconds,
            hits,
            misses,
            read / len(hits),
        )
    finally:
        broker.kill()
        shutil.rmtree(directory, ignore_errors=True)


def _wait_until_indexed(broker: BrokerProcess, log: Path, begin: float) -> tuple[float, float]:
    """Seconds until all closed segments have an index, and CPU seconds of the process."""
    cpu: dict[int, float] = {}
    while True:
        for pid in children_of(broker.pid):
            cpu[pid] = max(cpu.get(pid, 0.0), _cpu_seconds(pid))
        closed = {path.stem for path in _indexable(log)}
        if closed and {path.stem for path in log.glob("*.keyindex")} == closed:
            return time.monotonic() - begin, max(cpu.values())
        if time.monotonic() - begin > WAIT_SECONDS:
            raise BrokerError(f"no index after {WAIT_SECONDS} s")
        time.sleep(0.02)


def _indexable(log: Path) -> list[Path]:
    """Segments that get an index; the active one is empty."""
    return [path for path in log.glob("*.log") if path.stat().st_size > BLOCK_BYTES]


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _fill(broker: BrokerProcess, size: Size) -> int:
    """Give the broker, which is stopped then, a topic with such a log; returns the records."""
    broker.start()
    _create_topic(broker, size)
    directory = broker.data_directory / f"{TOPIC}-0"
    while not (directory / "partition.metadata").exists():
        time.sleep(0.05)
    broker.stop()
    metadata = (directory / "partition.metadata").read_bytes()
    shutil.rmtree(directory)
    place = LogPlace(LogDirectory(str(broker.data_directory), DISK), TOPIC, 0)
    config_of = TopicConfig(segment_bytes=size.segment_bytes)
    log = create_log(place, config_of, LogSettings(), NOW_MS)
    count = _write(log, size)
    (directory / "partition.metadata").write_bytes(metadata)
    return count


def _create_topic(broker: BrokerProcess, size: Size) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {"key.index.enable": "true", "segment.bytes": str(size.segment_bytes)}
    for created in admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values():
        created.result(30)


def _write(log: Log, size: Size) -> int:
    """Fill a log with keys that come once each, in no order; returns how many."""
    per_batch = max(1, BATCH_BYTES // (size.record_bytes + KEY_DIGITS + 8))
    keys = [b"%0*d" % (KEY_DIGITS, index) for index in range(per_batch)]
    value = os.urandom(size.record_bytes)
    batch = build_batch([NewRecord(NOW_MS, key, value) for key in keys])
    places = [batch.index(key) for key in keys]
    batches = size.log_bytes // len(batch)
    count = batches * per_batch
    number = 0
    for _ in range(batches):
        OFFSET.pack_into(batch, 0, log.log_end_offset)
        for at in places:
            batch[at : at + KEY_DIGITS] = b"%016d" % (number * KEYS_APART % count)
            number += 1
        CRC.pack_into(batch, CRC_POSITION, compute_crc(batch, 0, len(batch)))
        log.append_as_follower(batch, NOW_MS)
    log.roll(NOW_MS)
    log.close()
    return count


def main(arguments: Sequence[str] | None = None) -> Figures:
    """Measure what the command line asks for and print the figures."""
    parser = argparse.ArgumentParser(prog="key_index", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes")
    for name in Size.__slots__:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int)
    options = vars(parser.parse_args(arguments))
    usual = SMOKE if options.pop("smoke") else FULL
    given = {name: value for name, value in options.items() if value is not None}
    size = Size(**{name: given.get(name, getattr(usual, name)) for name in Size.__slots__})
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        figures = measure(size, Path(directory) / "ours")
    for line in figures.lines:
        print(line)
    return figures


if __name__ == "__main__":
    main()
