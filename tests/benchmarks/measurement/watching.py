"""Measurements while a broker is busy with something else: latencies, memory, processor."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from protocol.messages.produce import ProduceRequest
from protocol.records.builder import NewRecord, build_batch
from tests.support.processes.children import children_of
from tests.support.wire import RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.broker_process import BrokerProcess

STEADY = "steady"
"""The topic that is produced to; it has one partition."""
NOW_MS = 1_795_229_963_000
PRODUCE_VERSION = 3
SAMPLE_SECONDS = 0.1


class SteadyProducer:
    """Sends a batch when it is due, on a thread, until the block ends."""

    def __init__(self, port: int, batches_per_second: int) -> None:
        self.latencies_ms: list[float] = []
        self._interval = 1 / batches_per_second
        self._port = port
        self._is_over = False
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()

    @property
    def p99_ms(self) -> float:
        return quantiles(self.latencies_ms, n=100)[98]

    def _run(self) -> None:
        request = _produce_request()
        with RawConnection.open(self._port, 30.0) as connection:
            due = time.monotonic()
            while not self._is_over:
                due += self._interval
                time.sleep(max(0.0, due - time.monotonic()))
                connection.ask(request)
                self.latencies_ms.append((time.monotonic() - due) * 1000)


class PeakMemory:
    """Samples the resident memory of a broker and of the processes that it started."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._pid = 0
        self._is_over = Event()

    @contextmanager
    def of(self, broker: BrokerProcess) -> Iterator[None]:
        """Sample this one for as long as the block lasts."""
        self._pid = broker.pid
        self._is_over.clear()
        thread = Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def cpu_seconds(self) -> float:
        """Processor time of the broker and of what it started and has ended, or runs."""
        return sum(_cpu_seconds(pid) for pid in self._pids())

    def _run(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            self.peak_bytes = max(self.peak_bytes, sum(map(_resident_bytes, self._pids())))

    def _pids(self) -> list[int]:
        return [self._pid, *children_of(self._pid)]


def _resident_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    line = next((line for line in text.splitlines() if line.startswith("VmRSS:")), "VmRSS: 0")
    return int(line.split()[1]) * 1024


def _cpu_seconds(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return 0.0
    # Its own time and that of its children that have ended.
    return sum(map(int, text.rpartition(")")[2].split()[11:15])) / 100


def _produce_request() -> bytes:
    records = build_batch([NewRecord(NOW_MS, b"key", bytes(1000)) for _ in range(16)])
    data = ProduceRequest.TopicData
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            data(
                name=STEADY,
                partition_data=[data.PartitionData(index=0, records=memoryview(records))],
            )
        ],
    )
    header = request_header(ProduceRequest.API_KEY, PRODUCE_VERSION)
    return header + request.encode(PRODUCE_VERSION)
