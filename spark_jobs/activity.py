"""Job: follow the activity on a website: sessions of visitors, funnels, ways and top pages.

    TOPIC  ->  PREFIX.sessions       a record per session, once it is closed
           ->  PREFIX.funnels        per window, funnel and step: sessions that reached it
           ->  PREFIX.transitions    per window and pair of steps: how often one led to the other
           ->  PREFIX.top-pages      per window: its pages with most views
           ->  TOPIC.rejected        what breaks a rule, unless --no-keep-rejects

What an event is, and what of it is visitor, page and step, stands in the definition (`sessions`
has the section [activity]). All topics but that of rejects are compacted: the last record of a key
is what holds. Each is a table too, `--table`/sessions, funnels, transitions, top-pages and pages
(the views of all pages), with the same rows (`tables` says how they are read).

Two queries do it. `activity-sessions` remembers events of open sessions in Spark's state; a session
is closed, told and counted in funnels and transitions when the watermark has passed its last event
by the gap. So the last sessions of a topic stay open until later events push the watermark on.
`activity-pages` counts views, each time that a batch changes a window.

Everything is exact after any interruption: a batch that was interrupted comes to the same sessions
and views again. Numbers of funnels and transitions are added up in their tables, once per batch,
and the topics get what the tables hold; what they get twice is equal. A checkpoint and its tables
are kept, or deleted, together.

An event that is older than the watermark allows is too late: it is left out of its window, and,
unless it still touches an open session, of all sessions. How many were is told at the end and in
the metrics (`dropped_by_watermark`), put together by visitor, or by window and page.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import spark_jobs.extra  # noqa: F401 - first of all: it says what is not installed

# isort: split
from spark_jobs.activity_tables import (
    OF_PAGES,
    OF_SESSIONS,
    TOPICS,
    Target,
    take_pages,
    take_sessions,
)
from spark_jobs.checkpoints import claim_checkpoint
from spark_jobs.errors import exit_code_of
from spark_jobs.options import DefinitionOptions, TopicName, parse_options
from spark_jobs.page_views import page_views
from spark_jobs.parsed import parsed
from spark_jobs.rejects import rejects
from spark_jobs.session import spark_session
from spark_jobs.sessions import ActivitySection, events, sessions
from spark_jobs.streams import read_stream, run, start_batches, start_query, write_batch
from spark_jobs.tables import Table
from spark_jobs.topics import COMPACTED, open_topics
from spark_jobs.upkeep import BackfillTable, StreamTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.tables import Shape
    from spark_jobs.upkeep import KeptTable

NAME = "activity"
SESSIONS_QUERY, PAGES_QUERY, REJECTS_QUERY = (
    f"{NAME}-sessions",
    f"{NAME}-pages",
    f"{NAME}-rejects",
)
HINT = "produce to it first, with `python -m spark_jobs produce_activity`, or name another --topic"


class ActivityOptions(DefinitionOptions):
    """Options of the job."""

    topic: TopicName = "activity"
    """topic to read"""

    definition: str = "activity"
    """TOML file that says what an event is, or the name of one that is built in"""

    table: Path = Path("build/spark_jobs/tables")
    """directory for the tables, each in one of its name"""

    only: tuple[Literal["sessions", "pages"], ...] = ("sessions", "pages")
    """what to do: sessions, with funnels and transitions, and pages"""

    keep_rejects: bool = True
    """write records that break a rule to the topic of rejects"""

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
    description = (__doc__ or "").partition("\n")[0]
    options = parse_options(ActivityOptions, argv, NAME, description)
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
    queries += [REJECTS_QUERY] if options.keep_rejects else []
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
        if options.keep_rejects:
            topics.create_missing([options.rejects()], options.partitions, {})


def _made_with(options: ActivityOptions, query: str) -> dict[str, str]:
    """Return what a query's state and tables were made with, and must not change."""
    if query == REJECTS_QUERY:
        return {}
    section = options.section()
    fields = ["granularities", "page"]
    if query == SESSIONS_QUERY:
        fields += ["visitor", "step", "referrer", "gap", "funnels"]
    return {name: json.dumps(getattr(section, name)) for name in fields}


def take(spark: SparkSession, records: DataFrame, options: ActivityOptions) -> None:
    """Do with a batch of Kafka records what the queries would; all its sessions are closed.

    Windows then hold what the batch does. The tables must be others than a stream's.
    """
    _create_topics(spark, options)
    rows = parsed(spark, records, options.load_definition())
    valid, section = events(rows, options.load_definition()), options.section()
    if "sessions" in options.only:
        take_sessions(_target(options, OF_SESSIONS, None), sessions(valid, section), 0)
    if "pages" in options.only:
        take_pages(_target(options, OF_PAGES, None), page_views(valid, section), 0)
    if options.keep_rejects:
        write_batch(rejects(rows, NAME, options.rejects()), options)


def _start_sessions(spark: SparkSession, options: ActivityOptions) -> StreamingQuery:
    target = _target(options, OF_SESSIONS, SESSIONS_QUERY)
    valid = events(_stream(spark, options), options.load_definition())
    rows = sessions(valid, options.section())
    return start_batches(rows, options, SESSIONS_QUERY, partial(take_sessions, target))


def _start_pages(spark: SparkSession, options: ActivityOptions) -> StreamingQuery:
    target = _target(options, OF_PAGES, PAGES_QUERY)
    valid = events(_stream(spark, options), options.load_definition())
    rows = page_views(valid, options.section())
    take = partial(take_pages, target)
    return start_batches(rows, options, PAGES_QUERY, take, output_mode="update")


def _start_rejects(spark: SparkSession, options: ActivityOptions) -> StreamingQuery:
    records = rejects(_stream(spark, options), NAME, options.rejects())
    return start_query(records, options, REJECTS_QUERY)


_STARTS = {
    SESSIONS_QUERY: _start_sessions,
    PAGES_QUERY: _start_pages,
    REJECTS_QUERY: _start_rejects,
}


def _stream(spark: SparkSession, options: ActivityOptions) -> DataFrame:
    return parsed(spark, read_stream(spark, options, options.topic), options.load_definition())


def _target(options: ActivityOptions, shapes: Mapping[str, Shape], query: str | None) -> Target:
    """Return where a query's results go, or without one those of a backfill."""
    tables: dict[str, KeptTable] = {}
    for name, shape in shapes.items():
        table = Table(options.table / name, shape)
        if query is None:
            tables[name] = BackfillTable(table)
        else:
            tables[name] = StreamTable(table, options.checkpoint / query)
    return Target(options, options.section(), options.topics(), tables)


if __name__ == "__main__":
    sys.exit(main())
