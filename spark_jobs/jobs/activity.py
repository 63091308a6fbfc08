"""Job: follow a website's visitors: sessions, funnels, transitions between pages, top pages.

    TOPIC  ->  PREFIX.sessions       a record per session, once it is closed
           ->  PREFIX.funnels        per window, funnel and step: sessions that reached it
           ->  PREFIX.transitions    per window and pair of steps: how often one led to the other
           ->  PREFIX.top-pages      per window: its pages with most views
           ->  TOPIC.rejected        what breaks a rule, unless --no-keep-rejects

What an event is, and what of it is visitor, page and step, stands in the definition
(`visitor_sessions` has the section [activity]). All topics but that of rejects are compacted: the
last record of a key is what holds. Each is a table too, `--table`/sessions, funnels, transitions,
top-pages and pages (the views of all pages), with the same rows, in the format of `--format`.

Two queries do it. `activity-sessions` remembers events of open sessions in Spark's state; a session
is closed, told and counted in funnels and transitions when the watermark has passed its last event
by the gap. So the last sessions of a topic stay open until later events push the watermark on.
`activity-pages` counts views, each time that a batch changes a window, and writes rejects:
`--only sessions` leaves both to who does `--only pages`.

Everything is exact after any interruption: a batch that was interrupted comes to the same sessions
and views again. Numbers of funnels, transitions and views are added up in their tables, once per
batch, and the topics get what the tables hold; what they get twice is equal. A checkpoint and its
tables are kept, or deleted, together.

An event that the watermark has passed by the gap is too late for sessions and left out, also where
one is open that it would belong to. How many were, put together by visitor, is told at the end and
in the metrics (`dropped_by_watermark`). No event is too late for the views of its page.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import exit_code_of
from spark_jobs.kafka.topics import COMPACTED, open_topics
from spark_jobs.options import TableOptions, TopicName, parse_options
from spark_jobs.program import PROGRAM
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import read_stream, run, start_batches
from spark_jobs.tables.kept_table import KeptTable
from spark_jobs.visitors.activity_tables import (
    OF_PAGES,
    OF_SESSIONS,
    TOPICS,
    Target,
    take_pages,
    take_sessions,
)
from spark_jobs.visitors.page_views import opened
from spark_jobs.visitors.visitor_sessions import ActivitySection, events, sessions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.tables.lakehouse_table import Merge

NAME = "activity"
SESSIONS_QUERY, PAGES_QUERY = f"{NAME}-sessions", f"{NAME}-pages"
HINT = f"produce to it first, with `{PROGRAM} produce_activity`, or name another --topic"


class ActivityOptions(TableOptions):
    """Options of the job."""

    topic: TopicName = "activity"
    """topic to read"""

    definition: str = "activity"
    """TOML file that defines the events, or the name of a built-in one"""

    only: tuple[Literal["sessions", "pages"], ...] = ("sessions", "pages")
    """what to do: sessions, with funnels and transitions; pages, with rejects"""

    keep_rejects: bool = True
    """send records that break a rule to the rejects topic"""

    def section(self) -> ActivitySection:
        """Return the section [activity] of the definition."""
        return self.load_definition().section("activity", ActivitySection)

    def topics(self) -> dict[str, str]:
        """Return the topics by table."""
        prefix = self.section().prefix
        return {name: f"{prefix}.{name}" for name in TOPICS}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(ActivityOptions, argv, NAME, __doc__)
    options.topics()  # a mistake in the file is told before Spark starts
    with spark_session(options, NAME) as spark:
        rows = run(start(spark, options), options)
    for query, count in rows.items():
        print(f"{query}: {count:,} records")
    return 0


def start(spark: SparkSession, options: ActivityOptions) -> list[StreamingQuery]:
    """Start the queries, creating the topics that are not there."""
    names = {"sessions": SESSIONS_QUERY, "pages": PAGES_QUERY}
    queries = [names[name] for name in options.only]
    with open_topics(spark, options) as topics:
        topics.require(options.topic, HINT)
        for query in queries:
            identity = topics.identity(query, options.topic) | _made_with(options, query)
            claim_checkpoint(options.checkpoint / query, identity)
    _create_topics(spark, options)
    return [_STARTS[query](spark, options) for query in queries]


def _create_topics(spark: SparkSession, options: ActivityOptions) -> None:
    with open_topics(spark, options) as topics:
        topics.create_missing(options.topics().values(), options.partitions, COMPACTED)
        if options.keep_rejects and "pages" in options.only:
            topics.create_missing([options.rejects()], options.partitions, {})


def _made_with(options: ActivityOptions, query: str) -> dict[str, str]:
    """Return what a query's state and tables were made with, and must not change."""
    section = options.section()
    fields = ["granularities", "page"]
    if query == SESSIONS_QUERY:
        fields += ["visitor", "step", "referrer", "gap", "longest", "funnels"]
    return {name: json.dumps(getattr(section, name)) for name in fields}


def take(spark: SparkSession, records: DataFrame, options: ActivityOptions) -> None:
    """Do with a batch of Kafka records what the queries would; all its sessions are closed.

    Windows then hold what the batch does. The tables must be others than a stream's.
    """
    _create_topics(spark, options)
    definition = options.load_definition()
    rows = parsed(spark, records, definition)
    if "sessions" in options.only:
        found = sessions(events(rows, definition), options.section())
        take_sessions(_target(spark, options, OF_SESSIONS, None), found, 0)
    if "pages" in options.only:
        take_pages(_target(spark, options, OF_PAGES, None), opened(rows, definition, NAME), 0)


def _start_sessions(spark: SparkSession, options: ActivityOptions) -> StreamingQuery:
    target = _target(spark, options, OF_SESSIONS, SESSIONS_QUERY)
    valid = events(_stream(spark, options), options.load_definition())
    rows = sessions(valid, options.section())
    return start_batches(rows, options, SESSIONS_QUERY, partial(take_sessions, target))


def _start_pages(spark: SparkSession, options: ActivityOptions) -> StreamingQuery:
    target = _target(spark, options, OF_PAGES, PAGES_QUERY)
    rows = opened(_stream(spark, options), options.load_definition(), NAME)
    return start_batches(rows, options, PAGES_QUERY, partial(take_pages, target))


_STARTS = {SESSIONS_QUERY: _start_sessions, PAGES_QUERY: _start_pages}


def _stream(spark: SparkSession, options: ActivityOptions) -> DataFrame:
    return parsed(spark, read_stream(spark, options, options.topic), options.load_definition())


def _target(
    spark: SparkSession, options: ActivityOptions, merges: Mapping[str, Merge], query: str | None
) -> Target:
    """Return where a query's results go, or without one those of a backfill."""
    checkpoint = None if query is None else options.checkpoint / query
    without = () if options.section().funnels else ("funnels",)
    tables = {
        name: KeptTable(options.table / name, options.format, how, checkpoint)
        for name, how in merges.items()
        if name not in without
    }
    for table in tables.values():
        table.require_keeper(spark)
    rejects = options.rejects() if options.keep_rejects else None
    return Target(options, options.section(), options.topics(), tables, rejects)


if __name__ == "__main__":
    sys.exit(main())
