"""Rows whose client costs nearly nothing: what a broker takes and gives when nobody slows it down.

A Java client takes most of two cores that a broker shares with it, so rows with one say more about
the client. Here a small program in C sends the same request over and over, as fast as answers come,
and looks at nothing of an answer but its error code.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broker.runtime.clock import SystemClock
from protocol.api_keys import ApiKey
from protocol.headers import request_front
from protocol.messages.fetch import FetchRequest
from protocol.messages.produce import ProduceRequest
from protocol.records.builder import NewRecord, build_batch
from tests.benchmarks.measurement.performance_tools import PerformanceToolError
from tests.benchmarks.measurement.rows import FreshTopic, Result, Row
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from tests.support.brokers.broker_process import BrokerProcess

SOURCE = Path(__file__).parents[1] / "c" / "canned_frames.c"
BUILT = REPOSITORY / "build" / "benchmarks"
TIMEOUT_SECONDS = 300
LEADER_SECONDS = 30
PRODUCE_VERSION = 7
FETCH_VERSION = 4
CLIENT_ID = b"canned"
RECORD_BYTES = 100
IN_FLIGHT = 5
FETCHED_BATCHES = 256
"""Batches of 16 KB in each partition that is fetched over and over: 4 MB."""
SINGLE_RECORD_BYTES = 1
"""Fewer than a record takes: a batch has one at least."""
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Canned:
    """Number of connections, each with a partition of its own, and the requests sent over them."""

    connections: int
    bytes_each: int
    """Of the batch that is produced, or of the records that are fetched."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Throughput counted by the client."""

    answers: int
    bytes_sent: int
    bytes_received: int
    seconds: float


def canned_produce_row(load: Canned, requests: int) -> Row:
    """Return a row that sends the same batch of records of 100 B over each connection."""

    def measure(broker: BrokerProcess, topic: str, count: int) -> Result:
        with FreshTopic(broker, topic, load.connections):
            frames = begin(broker, topic, load)
            before = broker.cpu_seconds()
            reached = send(broker.port, count, frames, error_at_of_produce(topic))
            cpu_seconds = broker.cpu_seconds() - before
        return _result(reached.bytes_sent, reached.seconds, cpu_seconds)

    name = f"canned Produce, {_described(load)}"
    return Row(name, "MB/s", "≥ 1.0", measure, requests)


def canned_fetch_row(load: Canned, requests: int) -> Row:
    """Return a row that fetches the beginning of a partition again and again."""

    def measure(broker: BrokerProcess, topic: str, count: int) -> Result:
        with FreshTopic(broker, topic, load.connections):
            frames = begin(broker, topic, Canned(load.connections, 16 * 1024))
            filled = FETCHED_BATCHES * load.connections
            send(broker.port, filled, frames, error_at_of_produce(topic))
            frames = [_fetch(topic, number, load) for number in range(load.connections)]
            before = broker.cpu_seconds()
            reached = send(broker.port, count, frames, _error_at_of_fetch(topic))
            cpu_seconds = broker.cpu_seconds() - before
        return _result(reached.bytes_received, reached.seconds, cpu_seconds)

    name = f"canned Fetch, {_described(load)}"
    return Row(name, "MB/s", "≥ 1.0", measure, requests)


def flushed_produce_row(connections: int, partitions: int, requests: int) -> Row:
    """Return a row of producers of single records, each of which waits until its is on the disk."""

    def measure(broker: BrokerProcess, topic: str, count: int) -> Result:
        with FreshTopic(broker, topic, partitions, {"flush.messages": "1"}):
            load = Canned(partitions, SINGLE_RECORD_BYTES)
            frames = begin(broker, topic, load) * (connections // partitions)
            before = broker.cpu_seconds()
            error_at = error_at_of_produce(topic)
            reached = send(broker.port, count, frames, error_at, in_flight=1)
            cpu_seconds = broker.cpu_seconds() - before
        return Result(reached.answers / reached.seconds, cpu_seconds=cpu_seconds)

    where = f"{partitions} partition{'s' if partitions > 1 else ''}"
    name = f"Produce with flush.messages=1, {connections} connections, {where}"
    return Row(name, "requests/s", "≥ 2,000/s", measure, requests)


def _described(load: Canned) -> str:
    connections = f"{load.connections} connection{'s' if load.connections > 1 else ''}"
    return f"{connections}, {load.bytes_each // 1024} KB"


def _result(size: int, seconds: float, cpu_seconds: float) -> Result:
    megabytes_per_second = size / MEGABYTE / seconds
    return Result(megabytes_per_second, megabytes_per_second, cpu_seconds)


def begin(broker: BrokerProcess, topic: str, load: Canned) -> list[bytes]:
    """Return the frames that produce, each of them sent once.

    Apache Kafka names leaders of a new topic before they lead, and the client gives up at an error.
    """
    frames = [produce_frame(topic, number, load) for number in range(load.connections)]
    deadline = time.monotonic() + LEADER_SECONDS
    for frame in frames:
        while True:
            try:
                send(broker.port, 1, [frame], error_at_of_produce(topic))
                break
            except PerformanceToolError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
    return frames


def send(
    port: int, answers: int, frames: list[bytes], error_at: int, in_flight: int = IN_FLIGHT
) -> Reached:
    """Send each of the frames over a connection of its own until so many answers have come."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / f"frame-{number}" for number in range(len(frames))]
        for path, frame in zip(paths, frames, strict=True):
            path.write_bytes(frame)
        numbers = (port, answers, in_flight, error_at)
        outcome = subprocess.run(
            [str(_client()), *map(str, numbers), *map(str, paths)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    if outcome.returncode != 0:
        raise PerformanceToolError(outcome.stderr)
    counted, sent, received, seconds = outcome.stdout.split()
    return Reached(int(counted), int(sent), int(received), float(seconds))


def _client() -> Path:
    """Return the program, compiled if its source has changed."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    program = BUILT / f"canned_frames-{digest}"
    if not program.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            raise PerformanceToolError("`cc` is missing: install the Debian package gcc")
        BUILT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILT) as directory:
            fresh = Path(directory) / "canned_frames"
            subprocess.run([compiler, "-O2", "-o", str(fresh), str(SOURCE)], check=True)
            fresh.rename(program)
    return program


def produce_frame(topic: str, partition: int, load: Canned) -> bytes:
    """Return a request that has a batch of records of 100 B for a partition."""
    now_ms = SystemClock().now_ms()
    record = NewRecord(now_ms, None, bytes(range(RECORD_BYTES)))
    room = load.bytes_each - len(build_batch([record]))
    each = len(build_batch([record] * 2)) - len(build_batch([record]))
    batch = build_batch([record] * max(1, 1 + room // each))
    kind = ProduceRequest.TopicData
    data = kind.PartitionData(index=partition, records=batch)
    topics = [kind(name=topic, partition_data=[data])]
    body = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics).encode(PRODUCE_VERSION)
    return _frame(ApiKey.PRODUCE, PRODUCE_VERSION, body)


def _fetch(topic: str, partition: int, load: Canned) -> bytes:
    kind = FetchRequest.Topic
    wanted = kind.Partition(
        partition=partition, fetch_offset=0, partition_max_bytes=load.bytes_each
    )
    body = FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=load.bytes_each,
        topics=[kind(topic=topic, partitions=[wanted])],
    ).encode(FETCH_VERSION)
    return _frame(ApiKey.FETCH, FETCH_VERSION, body)


def _frame(key: ApiKey, version: int, body: bytes) -> bytes:
    return request_front(1, key, version, CLIENT_ID, len(body)) + body


def error_at_of_produce(topic: str) -> int:
    """Return the error code's position: behind size, correlation id, one topic, one partition."""
    return 4 + 4 + 4 + 2 + len(topic) + 4 + 4


def _error_at_of_fetch(topic: str) -> int:
    """The same, behind the throttle time too."""
    return 4 + 4 + 4 + 4 + 2 + len(topic) + 4 + 4


CANNED_ROWS: dict[str, Row] = {
    "canned-produce-1": canned_produce_row(Canned(1, 16 * 1024), 60_000),
    "canned-produce-4": canned_produce_row(Canned(4, 16 * 1024), 60_000),
    "canned-produce-16": canned_produce_row(Canned(16, 16 * 1024), 60_000),
    "canned-produce-128k": canned_produce_row(Canned(4, 128 * 1024), 10_000),
    "canned-produce-1k": canned_produce_row(Canned(16, 1024), 120_000),
    "flushed-produce-1": flushed_produce_row(50, 1, 30_000),
    "flushed-produce-50": flushed_produce_row(50, 50, 30_000),
    "canned-fetch-1": canned_fetch_row(Canned(1, 64 * 1024), 60_000),
    "canned-fetch-16": canned_fetch_row(Canned(16, 64 * 1024), 60_000),
    "canned-fetch-1m": canned_fetch_row(Canned(16, 1024 * 1024), 6_000),
}
"""By the name that `--rows` takes."""
