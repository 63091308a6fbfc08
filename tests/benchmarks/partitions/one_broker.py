"""One broker with 50,000 partitions of one replica each, of which nearly all rest.

Part of `tests.benchmarks.many_partitions`. Apache Kafka 4 gets fewer, as it takes too long with
50,000: the names of the rows say how many.

    create      from the request for the first topic until all partitions have a leader
    metadata    the first answer about all of them in a version that nobody has asked for yet, and
                the longest that another client has waited for its answers meanwhile
    idle        processor time, as a share of one processor, while nobody asks for anything
    stop        SIGTERM to the end of the process
    start       from the start of the process until clients are served
    produce     records of 1 KB to a topic of 10 partitions and to one of 1,000
"""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from protocol.messages.metadata import MetadataRequest
from tests.benchmarks.measurement import performance_tools
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import Result
from tests.support import wire
from tests.support.brokers.apache import apache_4
from tests.support.brokers.broker_process import BrokerError
from tests.support.brokers.cluster import told_by
from tests.support.brokers.ours import ours
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

CREATION_SECONDS = 900.0
START_SECONDS = 900.0
POLL_SECONDS = 0.25
MEGABYTE = 1 << 20
RECORD_BYTES = 1024
UNASKED_VERSION = 9
"""Of Metadata; what waits for the creation asks in another one."""
FORGETFUL = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500"}
"""Apache's controller makes a restarted broker wait until the killed one's session ends."""


@dataclass(frozen=True, slots=True)
class OneBrokerSize:
    """Number of partitions, by make, and the load on them."""

    topics: dict[str, int]
    partitions_of_each: int
    few: int
    records: int
    settling_seconds: float
    idle_seconds: float

    def partitions(self, make: str) -> int:
        """All that a make gets, but for the topic with few."""
        return self.topics[make] * self.partitions_of_each

    @property
    def text(self) -> str:
        """For the names of rows."""
        counts = f"{self.partitions(OURS):,} partitions (Apache {self.partitions(APACHE):,})"
        return f"one broker, {counts}"


FULL = OneBrokerSize({OURS: 50, APACHE: 5}, 1000, 10, 500_000, 30.0, 60.0)
SMOKE = OneBrokerSize({OURS: 2, APACHE: 2}, 6, 2, 200, 0.1, 0.5)


class OneBrokerRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._size = size = SMOKE if is_smoke else FULL
        self._create = RowReport(f"{size.text}: create", "s", "-")
        self._memory = RowReport(f"{size.text}: resident memory", "MB", "< 300 MB")
        self._idle = RowReport(f"{size.text}: idle", "% of a CPU", "≤ 1 %")
        self._metadata = RowReport(f"{size.text}: Metadata of all", "ms", "≤ 300 ms")
        self._wait = RowReport(f"{size.text}: longest wait of others for that", "ms", "≤ 20 ms")
        self._few = RowReport(f"{size.text}: produce 1 KB to {size.few}", "records/s", "-")
        many = f"{size.partitions_of_each:,}"
        self._many = RowReport(f"{size.text}: produce 1 KB to {many}", "records/s", "≥ 0.9 of few")
        self._stop = RowReport(f"{size.text}: stop", "s", "≤ 5 s")
        self._start = RowReport(f"{size.text}: start after that", "s", "≤ 5 s")
        self._again = RowReport(f"{size.text}: start after kill -9", "s", "≤ 10 s")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        resting = [self._create, self._memory, self._idle, self._metadata, self._wait]
        return [*resting, self._stop, self._start, self._again, self._few, self._many]

    def measure(self, makes: Sequence[str], directory: Path) -> None:
        """Measure each make, once: making the partitions takes longest."""
        for make in makes:
            broker = _build(make, directory / make)
            try:
                broker.start()
                self._measure_creation(broker, make)
                self._measure_rest(broker, make)
                self._measure_metadata(broker, make)
                self._measure_starts(broker, make)
                self._measure_produce(broker, make)
            finally:
                broker.kill()
                shutil.rmtree(directory / make, ignore_errors=True)

    def _measure_creation(self, broker: BrokerProcess, make: str) -> None:
        count = self._size.partitions_of_each
        topics = {f"many-{number}": count for number in range(self._size.topics[make])}
        before, started = broker.cpu_seconds(), time.monotonic()
        _create(broker, topics)
        self._create.results[make].append(_since(broker, before, started))
        _create(broker, {"few": self._size.few})

    def _measure_rest(self, broker: BrokerProcess, make: str) -> None:
        time.sleep(self._size.settling_seconds)
        before, started = broker.cpu_seconds(), time.monotonic()
        time.sleep(self._size.idle_seconds)
        used = broker.cpu_seconds() - before
        percentage = 100 * used / (time.monotonic() - started)
        self._idle.results[make].append(Result(percentage, cpu_seconds=used))
        self._memory.results[make].append(Result(broker.resident_bytes() / MEGABYTE))

    def _measure_metadata(self, broker: BrokerProcess, make: str) -> None:
        request = wire.request_header(wire.METADATA, UNASKED_VERSION) + b"\0"
        request += MetadataRequest(topics=None).encode(UNASKED_VERSION)
        with wire.RawConnection.open(broker.port) as connection, _waits(broker) as waits:
            before, started = broker.cpu_seconds(), time.monotonic()
            connection.ask(request)
            took = _since(broker, before, started)
        self._metadata.results[make].append(Result(took.value * 1000, cpu_seconds=took.cpu_seconds))
        self._wait.results[make].append(Result(max(waits) * 1000))

    def _measure_produce(self, broker: BrokerProcess, make: str) -> None:
        records = self._size.records
        for topic in ("few", "many-0"):  # a broker that has sent nothing yet warms up
            performance_tools.produce(broker.bootstrap, topic, records // 4, RECORD_BYTES)
        for row, topic in ((self._few, "few"), (self._many, "many-0")) * 2:
            before = broker.cpu_seconds()
            reached = performance_tools.produce(broker.bootstrap, topic, records, RECORD_BYTES)
            used = broker.cpu_seconds() - before
            row.results[make].append(
                Result(reached.records_per_second, reached.megabytes_per_second, used)
            )

    def _measure_starts(self, broker: BrokerProcess, make: str) -> None:
        started = time.monotonic()
        broker.stop()
        self._stop.results[make].append(Result(time.monotonic() - started))
        for row in (self._start, self._again):
            broker.kill()
            broker.launch()
            broker.wait_until_serving(START_SECONDS)
            row.results[make].append(
                Result(broker.startup_seconds, cpu_seconds=broker.cpu_seconds())
            )


def _build(make: str, directory: Path) -> BrokerProcess:
    if make == APACHE:
        return apache_4(directory, FORGETFUL, as_its_script_does=True)
    return ours(directory)


def _create(broker: BrokerProcess, topics: dict[str, int]) -> None:
    """Create topics one after the other, and wait until all their partitions have a leader."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for name, count in topics.items():
        topic = NewTopic(name, num_partitions=count, replication_factor=1)
        created = admin.create_topics([topic], operation_timeout=CREATION_SECONDS)
        created[name].result(CREATION_SECONDS)

    def are_led() -> bool:
        leaders = [at[0] for at, (leader, _, _) in told_by(broker.port).items() if leader >= 0]
        return sum(name in topics for name in leaders) == sum(topics.values())

    if not wait_until(are_led, CREATION_SECONDS, POLL_SECONDS):
        raise BrokerError(f"{', '.join(topics)}: created but not served")


def _since(broker: BrokerProcess, cpu_before: float, started: float) -> Result:
    seconds = time.monotonic() - started
    return Result(seconds, cpu_seconds=broker.cpu_seconds() - cpu_before)


@contextmanager
def _waits(broker: BrokerProcess) -> Iterator[list[float]]:
    """Have another client ask for the versions all the time; gives how long it waited, each time.

    The list is filled when the block is left.
    """
    waits: list[float] = []
    is_over = Event()
    with wire.RawConnection.open(broker.port) as connection:

        def ask() -> None:
            while not is_over.is_set():
                started = time.monotonic()
                connection.ask(wire.api_versions_request())
                waits.append(time.monotonic() - started)
                time.sleep(0.001)

        thread = Thread(target=ask)
        thread.start()
        try:
            yield waits
        finally:
            is_over.set()
            thread.join()
