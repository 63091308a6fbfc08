"""`python -m tests.benchmarks.pipeline`: the Spark jobs on ours and on Apache Kafka 4.

The broker is the only difference: the same jobs, the same records, the same Spark session in this
process. As in `end_to_end`, both brokers are started once, a turn thaws one and freezes it again,
rounds interleave them and alternate who goes first, and a first round is not counted. In a turn
the flights are produced to a new topic and each job runs over them, from its first record to its
last. Then come batch scans of a large topic (`pipeline_scan`), and at last each broker on its own
under a steady load for minutes (`pipeline_sustained`), beside which nothing else runs.
"""

from __future__ import annotations

import argparse
import shlex
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from spark_jobs.options import SparkOptions
from spark_jobs.spark.spark_session import start_spark
from tests.benchmarks.end_to_end import MEGABYTE, OUTPUT, machine
from tests.benchmarks.measurement import contestants, report
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import Result
from tests.benchmarks.spark.pipeline_jobs import (
    JOB_ROWS,
    Feed,
    Turn,
    forget,
    produce_feed,
    run_row,
)
from tests.benchmarks.spark.pipeline_load import Verdict, table_of, verdict
from tests.benchmarks.spark.pipeline_scan import READS, ScanRows
from tests.benchmarks.spark.pipeline_sustained import Load, sustain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from tests.support.brokers.broker_process import BrokerProcess

JOBS, SCAN, SUSTAINED = "jobs", "scan", "sustained"
PARTS = (JOBS, SCAN, SUSTAINED)
DEFAULT_ROUNDS = 3
WARM_UP = Feed(months=(1,), events=100_000)
SCAN_MEGABYTES = 1024
FEEDS = tuple(dict.fromkeys(row.feed for row in JOB_ROWS))
TURN_SECONDS = "all of it, one after another"

IDLE_SECONDS = 5
SPARK_SETTINGS = {
    f"spark.kafka.{client}.cache.{setting}": value
    for client in ("consumer", "producer")
    for setting, value in (("timeout", f"{IDLE_SECONDS}s"), ("evictorThreadRunInterval", "1s"))
}
"""Spark keeps Kafka clients for minutes. One that it closes while its broker is frozen waits for
that broker, and a task of the other broker's turn waits with it."""
LET_GO_SECONDS = IDLE_SECONDS + 3
"""After a turn, and not timed: so long does the broker run on, until Spark has closed them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Parts to measure, and how."""

    makes: tuple[str, ...]
    parts: tuple[str, ...]
    rounds: int
    feed: Feed
    scan_megabytes: int
    load: Load
    warms_up: bool = True
    output: Path = OUTPUT


class Session:
    """One run of a plan inside one Spark session, and what was measured so far."""

    def __init__(self, plan: Plan, directory: Path, console: Console) -> None:
        self._plan = plan
        self._directory = directory
        self._console = console
        names = [f"produce: {feed}" for feed in FEEDS]
        names += [f"{row.job}: {row.feed}" for row in JOB_ROWS]
        self._rows = {name: RowReport(name, "records/s", "≥ 1.0") for name in names}
        self._whole = RowReport(TURN_SECONDS, "s", "≤ 1.0")
        self._memory = RowReport("broker: resident memory after all rows", "MB", "≤ 0.2")
        self._peak = RowReport("broker: resident memory, peak", "MB", "≤ 0.2")
        self._scan = ScanRows(plan.scan_megabytes, READS if plan.warms_up else 0)

    def run(self) -> list[RowReport]:
        """Measure everything but the steady load, and return the rows of the table."""
        reports: list[RowReport] = []
        options = SparkOptions(spark_log=self._directory / "spark.log", spark=SPARK_SETTINGS)
        spark = start_spark(options, "bench")
        try:
            with contestants.running(self._plan.makes, self._directory) as brokers:
                if JOBS in self._plan.parts:
                    self._measure_jobs(spark, brokers)
                    reports += [*self._rows.values(), self._whole]
                if SCAN in self._plan.parts:
                    for make, broker in brokers.items():
                        with contestants.turn(broker):
                            self._scan.measure(spark, broker, make, "scanned")
                            self._let_clients_go()
                    reports += self._scan.reports
                self._measure_memory(brokers)
        finally:
            spark.stop()
        return [*reports, self._memory, self._peak]

    def _measure_jobs(self, spark: SparkSession, brokers: dict[str, BrokerProcess]) -> None:
        for number in range(0 if self._plan.warms_up else 1, self._plan.rounds + 1):
            makes = list(brokers) if number % 2 == 0 else list(reversed(brokers))
            for make in makes:
                with contestants.turn(brokers[make]) as broker:
                    feed = self._plan.feed if number > 0 else WARM_UP
                    results = self._turn(spark, broker, f"round-{number}", feed)
                    self._let_clients_go()
                if number > 0:
                    self._note(make, results)

    def _let_clients_go(self) -> None:
        if len(self._plan.makes) > 1:
            time.sleep(LET_GO_SECONDS)

    def _turn(
        self, spark: SparkSession, broker: BrokerProcess, name: str, feed: Feed
    ) -> dict[str, tuple[int, Result]]:
        produced = {kind: produce_feed(broker, kind, f"{name}-{kind}", feed) for kind in FEEDS}
        results = {f"produce: {kind}": (of.records, of.result) for kind, of in produced.items()}
        turn = Turn(name, produced, self._directory / f"jobs-{broker.port}" / name)
        for row in JOB_ROWS:
            result = run_row(spark, broker, row, turn)
            results[f"{row.job}: {row.feed}"] = (produced[row.feed].records, result)
        forget(broker, name)
        for row_name, (_, result) in results.items():
            self._console.print(
                f"{name}: {row_name}: {broker.name}: {result.value:,.0f} records/s, "
                f"broker CPU {result.cpu_seconds or 0.0:.2f} s",
                highlight=False,
            )
        return results

    def _note(self, make: str, results: dict[str, tuple[int, Result]]) -> None:
        for name, (_, result) in results.items():
            self._rows[name].results[make].append(result)
        seconds = sum(records / result.value for records, result in results.values())
        cpu = sum(result.cpu_seconds or 0.0 for _, result in results.values())
        self._whole.results[make].append(Result(seconds, cpu_seconds=cpu))

    def _measure_memory(self, brokers: dict[str, BrokerProcess]) -> None:
        for make, broker in brokers.items():
            now, peak = broker.resident_bytes(), broker.peak_resident_bytes()
            self._memory.results[make].append(Result(now / MEGABYTE))
            self._peak.results[make].append(Result(peak / MEGABYTE))


def measure_load(plan: Plan, directory: Path, console: Console) -> dict[str, Verdict]:
    """Put each broker under the steady load, alone on the machine, and print what became of it."""
    verdicts = {}
    for make in plan.makes:
        broker = contestants.build(make, directory / f"broker-{make}")
        broker.start()
        try:
            samples = sustain(broker, plan.load, directory / f"load-{make}")
        finally:
            broker.kill()
        verdicts[make] = verdict(samples, plan.load.rate)
        load = plan.load
        title = f"{load.job} at {load.rate:,} events/s for {load.seconds:,.0f} s: {broker.name}"
        console.print(table_of(samples, title))
        console.print(f"{broker.name}: {verdicts[make].words()}", highlight=False)
    return verdicts


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Run what the command line asks for, print the table, write it to `build/benchmarks/`."""
    plan = _plan_of(_parser().parse_args(arguments))
    console = Console(width=160)
    reports: list[RowReport] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        if {JOBS, SCAN} & {*plan.parts}:
            reports = Session(plan, Path(directory), console).run()
            title = f"Spark jobs, medians of {plan.rounds} rounds, {machine()}"
            report.show(reports, console, title)
            report.write(reports, plan.output, title, "pipeline")
        if SUSTAINED in plan.parts:
            measure_load(plan, Path(directory), console)
    return reports


def _plan_of(options: argparse.Namespace) -> Plan:
    makes = (options.only,) if options.only else (OURS, APACHE)
    load = Load(
        rate=options.rate,
        pace=options.pace or options.rate / 200,
        seconds=options.seconds,
        sample_seconds=max(options.seconds / 60, 0.5),
        job=options.job,
        flags=tuple(shlex.split(options.job_flags)),
        trigger_seconds=options.trigger_seconds,
        on_cluster=options.cluster,
    )
    parts, months = tuple(options.parts), tuple(options.months)
    if options.smoke:
        return Plan(makes[:1], parts, 1, Feed((2,), 2_000, 2_000), 4, load, False, options.output)
    rounds, megabytes = options.rounds, SCAN_MEGABYTES
    return Plan(makes, parts, rounds, Feed(months), megabytes, load, output=options.output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pipeline", description=__doc__)
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS, help="counted rounds")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="only these")
    parser.add_argument(
        "--months", nargs="+", type=int, default=(), help="flights of these months; all by default"
    )
    parser.add_argument("--rate", type=int, default=20_000, help="events a second of the load")
    parser.add_argument(
        "--pace", type=float, help="events a second of event time; --rate / 200 by default"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="how long the load lasts")
    parser.add_argument("--job", default="activity", help="what takes the load in")
    parser.add_argument(
        "--job-flags", default="--driver-memory 4g", help="more for that job's command line"
    )
    parser.add_argument(
        "--trigger-seconds", type=float, default=10.0, help="least time from batch to batch"
    )
    parser.add_argument(
        "--cluster", action="store_true", help="the load's executors are processes of their own"
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--only-ours", dest="only", action="store_const", const=OURS)
    only.add_argument("--only-apache", dest="only", action="store_const", const=APACHE)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one broker, one round")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the tables go")
    return parser


if __name__ == "__main__":
    main()
