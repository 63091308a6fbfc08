"""Jobs that can be put through anything, and what must be there afterwards: pandas says.

Each takes in two days of flights (`days`), or some hours of a website's activity, in small batches,
as a process of its own. `check` compares what it wrote with what was produced, copies of a record
counted once where the job's promise is at-least-once.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from spark_jobs.visitors.visits import Site
from tests.spark_jobs.data import activity_results, days, website
from tests.spark_jobs.data.outside_readers import arrow_table, rows_of
from tests.spark_jobs.kafka.consuming import read_topic
from tests.spark_jobs.kills.job_process import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.flights.flight_feed import Line

RECORDS_PER_BATCH = 400
BATCHES = 4
"""What is produced makes one more of them."""

AIRPORTS = "delays-by-airport"


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a job works: each name and directory in it is its own."""

    servers: str
    topic: str
    place: Path
    spark: SparkSession
    """Of the tests, which reads what the job's own Spark wrote."""

    flags: Sequence[str] = ()
    """More for the command line."""

    launcher: tuple[str, ...] = ()
    """What the command line begins with, if not with `python -m spark_jobs NAME`."""

    def started_with(self, flags: Sequence[str] = (), launcher: tuple[str, ...] = ()) -> Setting:
        """Return the same with another command line."""
        return replace(self, flags=flags, launcher=launcher)

    def job(self, name: str, *flags: str, queries: tuple[str, ...] = ()) -> Job:
        """Return the job with all its flags."""
        common = ("--bootstrap-servers", self.servers, "--topic", self.topic)
        pace = ("--max-offsets-per-trigger", str(RECORDS_PER_BATCH))
        arguments = (*common, *pace, *flags, *self.flags)
        return Job(name, arguments, self.place / "checkpoint", queries, self.launcher)

    def check_rejects(self) -> None:
        """See that each damaged line is among the rejects, for its reason, and nothing else is."""
        origins = {(r.partition, r.offset): r for r in read_topic(self.servers, self.topic)}
        reasons = {}
        for record in read_topic(self.servers, f"{self.topic}.rejected"):
            reject = json.loads(record.value or b"")
            place = (reject["source"]["partition"], reject["source"]["offset"])
            reasons[place] = (origins[place].value, reject["reason"])
        damaged = [(line.value, line.damage.reason) for line in days.damaged() if line.damage]
        assert Counter(reasons.values()) == Counter(damaged)


@dataclass(frozen=True, slots=True)
class ExactJob:
    """How a job is started, and what must be there when it has come to its end."""

    job: Callable[[Setting], Job]
    check: Callable[[Setting], None]
    lines: Callable[[], list[Line]] = days.lines
    """What its topic must hold."""

    def produce(self, setting: Setting) -> None:
        """Make the topic, and fill it."""
        days.make_topic(setting.servers, setting.topic)
        days.produce_lines(setting.servers, setting.topic, self.lines())


def _route(setting: Setting) -> Job:
    return setting.job("route", "--set", f"prefix={setting.topic}")


def _check_routes(setting: Setting) -> None:
    flights = days.flights()
    cancelled = flights.dep_time.isna()
    delayed = ~cancelled & ((flights.arr_delay >= 15) | flights.arr_delay.isna())
    routes = {"cancelled": cancelled, "delayed": delayed, "on-time": ~cancelled & ~delayed}
    for route, chosen in routes.items():
        by_source = {
            record.headers["source"]: json.loads(record.value or b"")
            for record in read_topic(setting.servers, f"{setting.topic}.{route}")
        }
        found = Counter(tuple(row[name] for name in days.COLUMNS) for row in by_source.values())
        assert found == days.contents(flights[chosen]), route
    setting.check_rejects()


def _archive(setting: Setting) -> Job:
    return setting.job("archive", "--directory", str(setting.place / "archive"))


def _check_archive(setting: Setting) -> None:
    rows = arrow_table(setting.place / "archive").to_pandas()
    assert days.contents(rows) == days.contents(days.flights())
    assert Counter(rows.event_date.map(str)) == days.by_date()
    setting.check_rejects()


def _aggregate(setting: Setting) -> Job:
    flags = ("--set", f"prefix={setting.topic}", "--table", str(setting.place / "tables"))
    queries = (f"aggregate-{AIRPORTS}", "aggregate-rejects")
    return setting.job("aggregate", "--only", AIRPORTS, *flags, queries=queries)


def _activity(setting: Setting) -> Job:
    flags = ("--set", f"prefix={setting.topic}", "--table", str(setting.place / "tables"))
    queries = ("activity-sessions", "activity-pages")
    return setting.job("activity", *flags, queries=queries)


def _check_activity(setting: Setting) -> None:
    events = website.valid_events(read_topic(setting.servers, setting.topic))
    activity_results.check(activity_results.of_topics(setting.servers, setting.topic), events)
    activity_results.check(activity_results.of_tables(setting.place / "tables"), events)


@functools.cache
def _clicks() -> list[Line]:
    return [*islice(Site(pace=0.15, visitors=300).lines(), 1_900)]


def _check_windows(setting: Setting) -> None:
    expected: dict[tuple[str, str], tuple[int, int, int]] = {}
    flights = days.flights()
    for (origin, hour), group in flights.groupby(["origin", "time_hour"]):
        sums = int(group.dep_delay.sum()), int(group.dep_delay.count())
        expected[str(origin), str(hour)] = (len(group), *sums)
    for windows in (_windows_of_topic(setting), rows_of(setting.place / "tables" / AIRPORTS)):
        assert {
            (window["origin"], window["start"]): (
                window["flights"],
                window["dep_delay_sum"] or 0,
                window["dep_delay_count"],
            )
            for window in windows
            if window["granularity"] == "1 hour"
        } == expected
    setting.check_rejects()


def _windows_of_topic(setting: Setting) -> list[dict[str, Any]]:
    records = sorted(read_topic(setting.servers, f"{setting.topic}.{AIRPORTS}"))
    return [*{record.key: json.loads(record.value or b"") for record in records}.values()]


EXACT_JOBS = {
    "route": ExactJob(_route, _check_routes),
    "archive": ExactJob(_archive, _check_archive),
    "aggregate": ExactJob(_aggregate, _check_windows),
    "activity": ExactJob(_activity, _check_activity, _clicks),
}
