"""`python -m tests.benchmarks.end_to_end`: ours beside Apache Kafka 4, on this machine.

Both brokers are started once. A turn thaws one of them, runs one row's tool against it and
freezes it again, so that the other one costs nothing. A turn whose tool fails is counted as failed
in the table and run once more. The rounds interleave the brokers and
alternate who goes first; a first, smaller round warms both up and is not counted. Start-up is
measured on brokers of its own, because a restart would throw the warmth away; so are the start
after a crash (`recovery`), `compaction`, and three brokers (`replication`, `partitions`,
`catch-up`), which are compared with Apache Kafka 3.9.1, TLS and SASL (`security`), two brokers of
ours beside one of Apache Kafka's (`node`), consumer groups (`groups`) and share groups (`share`).
The rows `canned` and
`flushed-produce`, whose producers wait for the disk, have a client in C that sends the same request
over and over.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from tests.benchmarks.catching_up import CatchingUpRows
from tests.benchmarks.compaction import CompactionRows
from tests.benchmarks.groups.rebalances import RebalanceRows
from tests.benchmarks.groups.share_consumers import ShareRows
from tests.benchmarks.handshakes import HandshakeRows
from tests.benchmarks.many_partitions import ManyPartitionsRows
from tests.benchmarks.measurement import contestants, report
from tests.benchmarks.measurement.canned_frames import CANNED_ROWS
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.performance_tools import PerformanceToolError
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import ROWS as ROWS_OF_TOOLS
from tests.benchmarks.measurement.rows import Result, Row
from tests.benchmarks.measurement.waiting_records import WAITING_ROWS
from tests.benchmarks.node import NodeRows
from tests.benchmarks.recovery import RecoveryRows
from tests.benchmarks.replication import ReplicationRows
from tests.benchmarks.security import SecurityRows
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.brokers.broker_process import BrokerProcess

ROWS = ROWS_OF_TOOLS | CANNED_ROWS | WAITING_ROWS
OUTPUT = REPOSITORY / "build" / "benchmarks"
DEFAULT_ROUNDS = 3
WARM_UP_SHARE = 4
SMOKE_SHARE = 1000
SMOKE_LEAST_RECORDS = 50
MEGABYTE = 1024 * 1024


class RowsOfOwnBrokers(Protocol):
    """Rows that one kind of measurement fills, which starts its brokers by itself."""

    def __init__(self, *, is_smoke: bool) -> None: ...

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        ...

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Measure these makes of brokers."""
        ...


OWN_BROKERS: dict[str, type[RowsOfOwnBrokers]] = {
    "recovery": RecoveryRows,
    "compaction": CompactionRows,
    "replication": ReplicationRows,
    "partitions": ManyPartitionsRows,
    "catch-up": CatchingUpRows,
    "security": SecurityRows,
    "handshakes": HandshakeRows,
    "node": NodeRows,
    "groups": RebalanceRows,
    "share": ShareRows,
}
"""Rows that need brokers of their own, by their name for `--rows`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows to measure, and how."""

    makes: tuple[str, ...]
    rows: tuple[Row, ...]
    rounds: int
    share: int = 1
    """Each row runs with this fraction of its records: 1 is all of them."""

    own_brokers: tuple[str, ...] = tuple(OWN_BROKERS)
    """The rows of those that are measured too."""
    output: Path = OUTPUT


class Session:
    """One run of a plan: the brokers, the rounds, and what was measured so far."""

    def __init__(self, plan: Plan, directory: Path, console: Console) -> None:
        self._plan = plan
        self._directory = directory
        self._console = console
        self._rows = [RowReport(row.name, row.unit, row.target) for row in plan.rows]
        self._start = RowReport("start to serving", "s", "≤ 0.5 s")
        self._memory = RowReport("resident memory after all rows", "MB", "≤ 120 MB")
        self._peak = RowReport("resident memory, peak", "MB", "≤ 120 MB")

    def run(self) -> list[RowReport]:
        """Measure everything and return the rows of the table."""
        for number in range(self._plan.rounds):
            self._measure_start(number)
        with contestants.running(self._plan.makes, self._directory) as brokers:
            if self._plan.share == 1:
                self._round(0, brokers)
            for number in range(1, self._plan.rounds + 1):
                self._round(number, brokers)
            self._measure_memory(brokers)
        return [*self._rows, self._start, self._memory, self._peak, *self._measure_others()]

    def _measure_start(self, number: int) -> None:
        for make in self._plan.makes:
            directory = self._directory / f"start-{number}-{make}"
            seconds = contestants.start_once(make, directory)
            shutil.rmtree(directory)
            self._start.results[make].append(Result(seconds))

    def _measure_others(self) -> list[RowReport]:
        reports = []
        for name in self._plan.own_brokers:
            rows = OWN_BROKERS[name](is_smoke=self._plan.share != 1)
            rows.measure(self._plan.makes, self._directory / name, self._plan.rounds)
            reports += rows.reports
        return reports

    def _round(self, number: int, brokers: dict[str, BrokerProcess]) -> None:
        order = list(brokers) if number % 2 == 0 else list(reversed(brokers))
        for index, row in enumerate(self._plan.rows):
            for make in order:
                name = f"bench-{number}-{index}"
                try:
                    result = self._turn(brokers[make], row, name, number)
                except PerformanceToolError as failure:
                    self._rows[index].failures[make] += 1
                    self._console.print(f"{row.name}: {brokers[make].name}: FAILED: {failure}")
                    result = self._turn(brokers[make], row, f"{name}-again", number)
                if number > 0:
                    self._rows[index].results[make].append(result)

    def _turn(self, broker: BrokerProcess, row: Row, name: str, number: int) -> Result:
        share = self._plan.share if number > 0 else WARM_UP_SHARE
        records = max(row.records // share, SMOKE_LEAST_RECORDS)
        label = f"round {number}" if number > 0 else "warm-up"
        try:
            with contestants.turn(broker):
                result = row.measure(broker, name, records)
        except PerformanceToolError as error:
            # Once: a broker that was frozen in mid-flight may fail the first client it sees.
            self._console.print(f"{label}: {row.name}: {broker.name} FAILED, tried again: {error}")
            with contestants.turn(broker):
                result = row.measure(broker, f"{name}-again", records)
        cpu = f", broker CPU {result.cpu_seconds:.2f} s" if result.cpu_seconds is not None else ""
        said = f"{label}: {row.name}: {broker.name}: {result.value:,.2f} {row.unit}{cpu}"
        self._console.print(said, highlight=False)
        return result

    def _measure_memory(self, brokers: dict[str, BrokerProcess]) -> None:
        for make, broker in brokers.items():
            now, peak = broker.resident_bytes(), broker.peak_resident_bytes()
            self._memory.results[make].append(Result(now / MEGABYTE))
            self._peak.results[make].append(Result(peak / MEGABYTE))


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Run what the command line asks for, print the table, write it to `build/benchmarks/`."""
    plan = _plan_of(_parser().parse_args(arguments))
    console = Console(width=180)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        reports = Session(plan, Path(directory), console).run()
    title = f"Medians of {plan.rounds} rounds, {machine()}"
    report.show(reports, console, title)
    report.write(reports, plan.output, title)
    return reports


def _plan_of(options: argparse.Namespace) -> Plan:
    makes = (options.only,) if options.only else (OURS, APACHE)
    rows = tuple(ROWS[name] for name in options.rows if name in ROWS)
    others = tuple(name for name in options.rows if name in OWN_BROKERS)
    if options.smoke:
        return Plan(makes[:1], rows, 1, SMOKE_SHARE, others, options.output)
    return Plan(makes, rows, options.rounds, own_brokers=others, output=options.output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="end_to_end", description=__doc__)
    names = [*ROWS, *OWN_BROKERS]
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS, help="counted rounds")
    parser.add_argument("--rows", nargs="+", choices=names, default=names, help="only these rows")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--only-ours", dest="only", action="store_const", const=OURS)
    only.add_argument("--only-apache", dest="only", action="store_const", const=APACHE)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one broker, one round")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the tables go")
    return parser


def machine() -> str:
    """Say what it was measured on."""
    return f"{os.cpu_count()} CPUs ({platform.machine()}), Python {platform.python_version()}"


if __name__ == "__main__":
    main()
