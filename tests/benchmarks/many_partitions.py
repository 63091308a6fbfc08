"""Three brokers of one make with 30,000 partitions of three replicas each: what so many cost.

`python -m tests.benchmarks.many_partitions` prints the rows alone; `make bench ARGS="--rows
partitions"` does as well. Ours are measured beside Apache Kafka 3.9.1, which gets 10,000. Whatever
the rounds, a make is measured once: making the partitions takes longest. The rows of one broker
come from `partitions.one_broker`.

    create      from the request for the first topic until all brokers say that all partitions of
                all topics have a leader and all replicas in sync
    idle        processor time of the three brokers, as a share of one processor, while nobody asks
                for anything
    elect       one broker is killed: from the end of its session until both survivors tell of
                another leader for all that it led
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console

from tests.benchmarks.measurement import report
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import Result
from tests.benchmarks.partitions.one_broker import OneBrokerRows
from tests.benchmarks.replication import BROKERS, MEGABYTE, Brokers, kill_and_wait
from tests.support.brokers.broker_process import BrokerError
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

CREATION_SECONDS = 900.0
SLOW_POLL_SECONDS = 0.25
"""An answer about all partitions costs the asked and the asker a good part of that."""


@dataclass(frozen=True, slots=True)
class Size:
    """Number of partitions, and time for which they are watched."""

    topics: int = 30
    topics_of_apache: int = 10
    partitions_of_each: int = 1000
    settling_seconds: float = 15.0
    idle_seconds: float = 30.0

    @property
    def text(self) -> str:
        """For the names of rows."""
        count, others = (
            topics * self.partitions_of_each for topics in (self.topics, self.topics_of_apache)
        )
        return f"three brokers, 3.9.1, {count:,} partitions (Apache {others:,})"


FULL = Size()
SMOKE = Size(
    topics=2, topics_of_apache=2, partitions_of_each=6, settling_seconds=0.1, idle_seconds=0.5
)


class ManyPartitionsRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._size = size = SMOKE if is_smoke else FULL
        self.one_broker = OneBrokerRows(is_smoke=is_smoke)
        self._create = RowReport(f"{size.text}: create", "s", "≤ 1.0")
        self._idle = RowReport(f"{size.text}: idle", "% of a CPU", "≤ 1.0")
        self._memory = RowReport(f"{size.text}: resident memory", "MB", "≤ 0.2")
        self._elect = RowReport(f"{size.text}: elect after a death", "s", "≤ 1.0")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        rows = [self._create, self._idle, self._memory, self._elect]
        return [*self.one_broker.reports, *rows]

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Measure each make, once."""
        self.one_broker.measure(makes, directory / "one")
        for make in makes:
            place = directory / make
            with Brokers(make, place) as brokers:
                self._measure_creation(brokers, make)
                self._measure_idleness(brokers, make)
                self._measure_election(brokers, make)
            shutil.rmtree(place, ignore_errors=True)

    def _measure_creation(self, brokers: Brokers, make: str) -> None:
        topics = self._size.topics_of_apache if make == APACHE else self._size.topics
        names = [f"many-{number}" for number in range(topics)]
        count = self._size.partitions_of_each
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap, "log_level": 0})
        cpu_before, started = brokers.cpu_seconds(), time.monotonic()
        for name in names:
            topic = NewTopic(name, num_partitions=count, replication_factor=BROKERS)
            created = admin.create_topics([topic], operation_timeout=CREATION_SECONDS)
            created[name].result(CREATION_SECONDS)
        for name in reversed(names):
            if not wait_until(lambda name=name: brokers.is_whole(name, count), CREATION_SECONDS):  # type: ignore[misc]
                raise BrokerError(f"{name} of {make} is created but not served by all")
        seconds = time.monotonic() - started
        used = brokers.cpu_seconds() - cpu_before
        self._create.results[make].append(Result(seconds, cpu_seconds=used))

    def _measure_idleness(self, brokers: Brokers, make: str) -> None:
        time.sleep(self._size.settling_seconds)
        cpu_before, started = brokers.cpu_seconds(), time.monotonic()
        time.sleep(self._size.idle_seconds)
        used = brokers.cpu_seconds() - cpu_before
        percentage = 100 * used / (time.monotonic() - started)
        self._idle.results[make].append(Result(percentage, cpu_seconds=used))
        self._memory.results[make].append(Result(brokers.resident_bytes() / MEGABYTE))

    def _measure_election(self, brokers: Brokers, make: str) -> None:
        victim = BROKERS - 1
        survivors = [one for one in brokers.members if one is not brokers.members[victim]]
        before = sum(one.cpu_seconds() for one in survivors)
        seconds = kill_and_wait(brokers, victim, SLOW_POLL_SECONDS)
        used = sum(one.cpu_seconds() for one in survivors) - before
        self._elect.results[make].append(Result(seconds, cpu_seconds=used))


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Measure what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(prog="many_partitions", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a few partitions")
    parser.add_argument("--only", choices=(OURS, APACHE))
    parser.add_argument("--one-broker", action="store_true", help="only the rows of one broker")
    options = parser.parse_args(arguments)
    rows = ManyPartitionsRows(is_smoke=options.smoke)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        makes = (options.only,) if options.only else (OURS, APACHE)
        if options.one_broker:
            rows.one_broker.measure(makes, Path(directory))
        else:
            rows.measure(makes, Path(directory), 1)
    report.show(rows.reports, Console(width=180), "Many partitions")
    return rows.reports


if __name__ == "__main__":
    main()
