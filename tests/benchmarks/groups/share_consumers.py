"""Share groups: how fast records are consumed, and what records in flight cost the broker.

    python -m tests.benchmarks.groups.share_consumers [--smoke]

`make bench ARGS="--rows share"` has the same rows beside Apache Kafka 4. Where polling
acknowledges, the consumers are those of Apache's `kafka-share-consumer-perf-test`; it cannot
acknowledge explicitly, which `ShareLoad.java` does, with a commit after each poll that is not
waited for. The tool counts the time of joining, so that heartbeats are frequent here.

In flight are as many records of each partition as a group may lock. What they cost is the resident
memory that was not there before, first as they were fetched, then with every other one released and
so a range of offsets for each record.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from protocol.messages.configs import IncrementalAlterConfigsRequest
from tests.benchmarks.groups.records_in_flight import hold_records
from tests.benchmarks.measurement import contestants, performance_tools, report
from tests.benchmarks.measurement.contestants import OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import FreshTopic, Result
from tests.benchmarks.measurement.timing import is_smoke_run
from tests.interop.security.principals import Principal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.measurement.performance_tools import Throughput
    from tests.support.brokers.broker_process import BrokerProcess

RECORD_BYTES = 100
GROUP, SET = 32, 0
"""A kind of resource, and what is done to a key of it."""
MEGABYTE = 1 << 20
KEYS = {
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "0",
}
LOCKS = 2_000
"""Of each partition, which is the default of `group.share.partition.max.record.locks`."""


class Load(NamedTuple):
    """Number and mode of the consumers."""

    consumers: int
    """A partition for each."""
    mode: str

    @property
    def text(self) -> str:
        """For the names of rows."""
        plural = "" if self.consumers == 1 else "s"
        return f"share group, 100 B, {self.consumers} consumer{plural}, {self.mode}"


@dataclass(frozen=True, slots=True)
class Size:
    """Number of records, and of partitions in flight."""

    records: int
    partitions_in_flight: int


FULL = Size(2_000_000, 50)
SMOKE = Size(500, 2)
LOADS = tuple(Load(count, mode) for mode in ("implicit", "explicit") for count in (1, 4))


class ShareRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._size = SMOKE if is_smoke else FULL
        self._has_warm_up = not is_smoke
        self._consumed = {
            load: RowReport(load.text, "records/s", "≥ 1.0, CPU ≤ 0.6") for load in LOADS
        }
        count = self._size.partitions_in_flight * LOCKS
        self._fetched = RowReport(f"{count:,} records in flight, as fetched", "MB", "< 100 MB")
        self._released = RowReport("the same, every other one released", "MB", "< 100 MB")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return [*self._consumed.values(), self._fetched, self._released]

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Measure brokers of each make in turns; a first round is not counted."""
        with contestants.running(tuple(makes), directory, KEYS) as brokers:
            for number in range(0 if self._has_warm_up else 1, rounds + 1):
                order = list(brokers) if number % 2 else list(reversed(brokers))
                for load, row in self._consumed.items():
                    for make in order:
                        with contestants.turn(brokers[make]):
                            result = self._consume(brokers[make], load, number)
                        if number:
                            row.results[make].append(result)
        for make in makes:
            self._hold(make, directory / f"in-flight-{make}")

    def _consume(self, broker: BrokerProcess, load: Load, number: int) -> Result:
        name = f"share-{number}-{load.consumers}-{load.mode}"
        begin_at_earliest(broker, name)
        with FreshTopic(broker, name, load.consumers):
            performance_tools.produce(broker.bootstrap, name, self._size.records, RECORD_BYTES)
            before = broker.cpu_seconds()
            reached = _consumed(broker.bootstrap, name, self._size.records, load)
            cpu_seconds = broker.cpu_seconds() - before
        return Result(reached.records_per_second, reached.megabytes_per_second, cpu_seconds)

    def _hold(self, make: str, directory: Path) -> None:
        broker = contestants.build(make, directory, KEYS)
        try:
            broker.start()
            begin_at_earliest(broker, "held")
            with FreshTopic(broker, "held", self._size.partitions_in_flight):
                fetched, released = hold_records(
                    broker, "held", self._size.partitions_in_flight, LOCKS
                )
            self._fetched.results[make].append(Result(fetched / MEGABYTE))
            self._released.results[make].append(Result(released / MEGABYTE))
        finally:
            broker.kill()
            shutil.rmtree(directory)


def begin_at_earliest(broker: BrokerProcess, group: str) -> None:
    """Have a share group read what is there already."""
    kind = IncrementalAlterConfigsRequest.Resource
    config = kind.Config(name="share.auto.offset.reset", config_operation=SET, value="earliest")
    resource = kind(resource_type=GROUP, resource_name=group, configs=[config])
    client = Principal(broker.port)
    [answer] = client.ask(
        IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1
    ).responses
    assert not answer.error_code, answer
    client.close()


def _consumed(bootstrap: str, name: str, records: int, load: Load) -> Throughput:
    if load.mode == "implicit":
        return performance_tools.share(bootstrap, name, records, load.consumers)
    return performance_tools.share_explicitly(bootstrap, name, records, load.consumers)


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Measure our broker, print and return the rows."""
    is_smoke = is_smoke_run("How fast share groups consume.", arguments)
    rows = ShareRows(is_smoke=is_smoke)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        rows.measure((OURS,), Path(directory), 1)
    report.show(rows.reports, Console(width=180), "Share groups")
    return rows.reports


if __name__ == "__main__":
    main()
