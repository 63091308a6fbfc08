"""The jobs that the pipeline benchmark runs: the same on every broker, on the same records.

Each runs inside one warm Spark session, from the first record of its topic to the last (`--once`),
on a checkpoint, tables and target topics of its own. What is timed is all of it, from the look for
topics to the end of the queries; starting Python and Spark is not, for no broker has a part in it.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka.admin import AdminClient

from spark_jobs.flights.flight_feed import Feed as FlightFeed
from spark_jobs.jobs.catalogue import job_module
from spark_jobs.kafka.line_producer import Numbered, ProducerOptions, produce_stream
from spark_jobs.options import parse_options
from spark_jobs.spark.streams import run_to_end
from spark_jobs.visitors.visits import Site
from tests.benchmarks.measurement.rows import TOPIC_TIMEOUT_SECONDS, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.brokers.broker_process import BrokerProcess

PARTITIONS = 4
FLIGHTS = "flights"
ACTIVITY = "activity"


class PipelineBenchError(RuntimeError):
    """A job did not do what it was to do, so that its time means nothing."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Amount of data produced for the jobs."""

    months: tuple[int, ...] = ()
    """of the flights; all of them when empty"""

    most: int = 10_000_000
    """of the flights"""

    events: int = 300_000
    """of website activity"""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job, and what it needs besides broker, topic and checkpoint."""

    job: str
    feed: str
    """FLIGHTS or ACTIVITY: which topic it reads."""

    flags: Callable[[str, Path], tuple[str, ...]]
    """Called with a prefix for topics and a directory for files, both fresh."""


@dataclass(frozen=True, slots=True)
class Produced:
    """A topic that holds a feed."""

    topic: str
    records: int
    result: Result


@dataclass(frozen=True, slots=True)
class Turn:
    """One broker's turn in one round."""

    name: str
    """Fresh: names of topics begin with it."""

    produced: Mapping[str, Produced]
    """By feed."""

    directory: Path


def _targets(prefix: str, place: Path) -> tuple[str, ...]:
    return ("--set", f"prefix={prefix}", "--table", str(place / "tables"))


JOB_ROWS = (
    JobRow("route", FLIGHTS, lambda prefix, _: ("--set", f"prefix={prefix}")),
    JobRow("archive", FLIGHTS, lambda _, place: ("--directory", str(place / "archive"))),
    JobRow("aggregate", FLIGHTS, _targets),
    JobRow("activity", ACTIVITY, _targets),
)


def produce_feed(broker: BrokerProcess, kind: str, topic: str, feed: Feed) -> Produced:
    """Produce a feed to a new topic."""
    options = ProducerOptions(
        bootstrap_servers=broker.bootstrap, topic=topic, partitions=PARTITIONS
    )
    stream = _flights(feed) if kind == FLIGHTS else _activity(feed)
    with Stopwatch(broker) as watch:
        outcome = produce_stream(options, stream)
    return Produced(topic, outcome.sent, watch.result(outcome.sent))


def _flights(feed: Feed) -> Numbered:
    year = FlightFeed(months=feed.months)
    flights = year.flights()
    total = min(len(flights) + year.damaged, feed.most)
    return Numbered(year.name, islice(year.lines(flights), total), total)


def _activity(feed: Feed) -> Numbered:
    site = Site()
    return Numbered(site.stream_name, islice(site.lines(), feed.events), feed.events)


def run_row(spark: SparkSession, broker: BrokerProcess, row: JobRow, turn: Turn) -> Result:
    """Run a job over its topic; return records per second and the broker's CPU time."""
    place = turn.directory / row.job
    prefix = f"{turn.name}-{row.job}"
    source = turn.produced[row.feed]
    module: Any = job_module(row.job)
    model = getattr(module, f"{row.job.title()}Options")
    argv = [
        "--bootstrap-servers",
        broker.bootstrap,
        "--once",
        "--checkpoint",
        f"{place}/checkpoint",
    ]
    argv += ["--topic", source.topic, "--rejects-topic", f"{prefix}.rejected"]
    options = parse_options(model, [*argv, *row.flags(prefix, place)], row.job, "")
    with Stopwatch(broker) as watch:
        rows = run_to_end(module.start(spark, options))
    if not rows or set(rows.values()) != {source.records}:
        raise PipelineBenchError(f"{row.job} read {rows} of {source.records} records")
    forget(broker, prefix)
    shutil.rmtree(place)
    return watch.result(source.records)


class Stopwatch:
    """Wall time and the broker's CPU time of a block."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    def __enter__(self) -> Self:
        self._cpu_before = self._broker.cpu_seconds()
        self._begin = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._begin
        self.cpu_seconds = self._broker.cpu_seconds() - self._cpu_before

    def result(self, records: int) -> Result:
        """Return records per second."""
        return Result(records / self.seconds, cpu_seconds=self.cpu_seconds)


def forget(broker: BrokerProcess, prefix: str) -> None:
    """Delete the topics whose names begin so, that no later row pays for their data."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    there = admin.list_topics(timeout=TOPIC_TIMEOUT_SECONDS).topics
    gone = [name for name in there if name.startswith(prefix)]
    if gone:
        for deleted in admin.delete_topics(gone).values():
            deleted.result(TOPIC_TIMEOUT_SECONDS)
