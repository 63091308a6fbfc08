"""The rows of the end-to-end table: what each measures and how much of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.benchmarks.measurement import performance_tools
from tests.benchmarks.measurement.performance_tools import TransactionLoad
from tests.support.brokers.broker_process import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support.brokers.broker_process import BrokerProcess

TOPIC_TIMEOUT_SECONDS = 120.0
NO_KEYS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement of one row on one broker."""

    value: float
    """Records per second, milliseconds, seconds or megabytes: the row's `unit`."""

    megabytes_per_second: float | None = None
    cpu_seconds: float | None = None
    """The broker's processor time while the tool ran."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: how to measure it once, and which ratio of ours to Apache's is wanted."""

    name: str
    unit: str
    target: str
    """The wanted ratio of ours to Apache's, as text for the table."""

    measure: Callable[[BrokerProcess, str, int], Result]
    """Called with a serving broker, a name for topic and group, and a count of records."""

    records: int


@dataclass(frozen=True, slots=True)
class Load:
    """Records that a tool sends or reads."""

    records: int
    record_bytes: int
    codec: str = "none"
    partitions: int = 1


def produce_row(name: str, target: str, load: Load) -> Row:
    """Return a row that runs ProducerPerformance on a fresh topic."""

    def measure(broker: BrokerProcess, topic: str, count: int) -> Result:
        with FreshTopic(broker, topic, load.partitions):
            before = broker.cpu_seconds()
            reached = performance_tools.produce(
                broker.bootstrap, topic, count, load.record_bytes, load.codec
            )
            cpu_seconds = broker.cpu_seconds() - before
        return Result(reached.records_per_second, reached.megabytes_per_second, cpu_seconds)

    return Row(name, "records/s", target, measure, load.records)


def transactions_row(name: str, target: str, load: TransactionLoad) -> Row:
    """Return a row whose producers commit after every so many records."""

    def measure(broker: BrokerProcess, topic: str, count: int) -> Result:
        whole = count // load.producers * load.producers
        with FreshTopic(broker, topic, load.producers):
            before = broker.cpu_seconds()
            reached = performance_tools.produce_in_transactions(
                broker.bootstrap, topic, replace(load, records=whole)
            )
            cpu_seconds = broker.cpu_seconds() - before
        return Result(reached.records_per_second, reached.megabytes_per_second, cpu_seconds)

    return Row(name, "records/s", target, measure, load.records)


def consume_row(name: str, target: str, load: Load) -> Row:
    """Return a row that fills a topic, unmeasured, and then runs ConsumerPerformance on it."""

    def measure(broker: BrokerProcess, topic: str, count: int) -> Result:
        with FreshTopic(broker, topic, load.partitions):
            performance_tools.produce(broker.bootstrap, topic, count, load.record_bytes)
            before = broker.cpu_seconds()
            reached = performance_tools.consume(broker.bootstrap, topic, topic, count)
            cpu_seconds = broker.cpu_seconds() - before
        return Result(reached.records_per_second, reached.megabytes_per_second, cpu_seconds)

    return Row(name, "records/s", target, measure, load.records)


def latency_row(name: str, target: str, load: Load) -> Row:
    """Return a row that runs EndToEndLatency on a fresh topic."""

    def measure(broker: BrokerProcess, topic: str, count: int) -> Result:
        with FreshTopic(broker, topic, load.partitions):
            before = broker.cpu_seconds()
            mean = performance_tools.mean_latency_ms(
                broker.bootstrap, topic, count, load.record_bytes
            )
            cpu_seconds = broker.cpu_seconds() - before
        return Result(mean, cpu_seconds=cpu_seconds)

    return Row(name, "ms", target, measure, load.records)


class FreshTopic:
    """A topic that exists for one measurement, so that no row pays for another's data.

    Giving back the pages of a gigabyte takes a broker a tenth of a second, so that is waited for.
    """

    def __init__(
        self,
        broker: BrokerProcess,
        name: str,
        partitions: int,
        config: Mapping[str, str] = NO_KEYS,
    ) -> None:
        self._data_directory = broker.data_directory
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        self._name = name
        self._partitions = partitions
        self._config = dict(config)

    def __enter__(self) -> None:
        topic = NewTopic(self._name, self._partitions, 1, config=self._config)
        self._admin.create_topics([topic])[self._name].result(TOPIC_TIMEOUT_SECONDS)
        deadline = time.monotonic() + TOPIC_TIMEOUT_SECONDS
        while not self._is_served():
            if time.monotonic() > deadline:
                raise BrokerError(f"{self._name} is created but not served")
            time.sleep(0.05)

    def _is_served(self) -> bool:
        known = self._admin.list_topics(self._name, TOPIC_TIMEOUT_SECONDS).topics[self._name]
        leaders = [partition.leader for partition in known.partitions.values()]
        return len(leaders) == self._partitions and min(leaders) >= 0

    def __exit__(self, *_: object) -> None:
        self._admin.delete_topics([self._name])[self._name].result(TOPIC_TIMEOUT_SECONDS)
        deadline = time.monotonic() + TOPIC_TIMEOUT_SECONDS
        while any(self._data_directory.glob(f"{self._name}-*")):
            if time.monotonic() > deadline:
                raise BrokerError(f"the files of {self._name} are still there")
            time.sleep(0.05)


ROWS: dict[str, Row] = {
    "produce-10": produce_row("produce 10 B", "≥ 1.2", Load(6_000_000, 10)),
    "produce-100": produce_row("produce 100 B", "≥ 1.2", Load(4_000_000, 100)),
    "produce-1k": produce_row("produce 1 KB", "≥ 1.2", Load(800_000, 1024)),
    "produce-1k-lz4": produce_row("produce 1 KB lz4", "≥ 1.2", Load(800_000, 1024, "lz4")),
    "produce-64": produce_row(
        "produce 100 B, 64 partitions", "≥ 1.0", Load(4_000_000, 100, partitions=64)
    ),
    "transactions": transactions_row(
        "produce 100 B in transactions of 100", "≥ 1.0", TransactionLoad(400_000, 100, 100, 4)
    ),
    "consume-100": consume_row("consume 100 B", "≥ 1.0", Load(4_000_000, 100)),
    "consume-1k": consume_row("consume 1 KB", "≥ 1.0", Load(800_000, 1024)),
    "latency": latency_row("end-to-end latency, mean", "≤ 1.0", Load(5_000, 100)),
}
"""All rows that a long-running broker is measured on, by the name that `--rows` takes."""
