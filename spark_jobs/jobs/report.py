"""Job: plot topics, consumer groups and the jobs' metrics on one HTML page.

    topic, or archive   records by event time; records that break a rule
    --topics            records by append time, beside the topic's own
    --metrics           lag and rate of jobs, batch by batch
    --groups            lag of consumer groups, now
    windows             a measure by group and hour of the day, if the definition has [report]
    TOPIC.rejected      rejects by reason

The page loads nothing, is as well read aloud as seen, in light and in dark, and has every number
it draws in a table too. Nothing is written but the page; what there is nothing of is left out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pydantic import Field
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_table import read_archive
from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import exit_code_of
from spark_jobs.kafka.offsets import open_offsets
from spark_jobs.kafka.topics import open_topics
from spark_jobs.options import SparkOptions, TopicName, parse_options, rejected_topic
from spark_jobs.paths import require_file, writing
from spark_jobs.report.report_numbers import ReportNumbers, as_time
from spark_jobs.report.report_page import render
from spark_jobs.report.report_sources import (
    ReportSection,
    event_times,
    group_lags,
    job_numbers,
    reject_reasons,
    topic_numbers,
    window_numbers,
)
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import read_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from spark_jobs.definitions.definition import Definition
    from spark_jobs.report.report_numbers import Throughput, WindowNumbers

NAME = "report"


class ReportOptions(SparkOptions):
    """Options of the report."""

    topic: TopicName = "flights"
    """topic whose records are counted by event time"""

    archive: Path | None = None
    """archive to count by event time in place of the topic, which need not exist"""

    definition: str = "flights"
    """TOML file that defines the records, or the name of a built-in one"""

    set: dict[str, str] = Field(default={})
    """a parameter of the definition, e.g. delayed_from_minutes=30; may be repeated"""

    topics: tuple[TopicName, ...] = ()
    """more topics to show the throughput of"""

    rejects_topic: TopicName | None = None
    """topic with rejected records; TOPIC.rejected if not given"""

    metrics: tuple[Path, ...] = ()
    """files that jobs have written with --metrics"""

    groups: tuple[str, ...] | None = None
    """consumer groups whose lag to show; all if not given"""

    title: str = ""
    """heading of the page"""

    output: Path = Path("data/spark_jobs/report.html")
    """file to write"""

    def rejects(self) -> str:
        """Return the topic of rejected records."""
        return rejected_topic(self.topic, self.rejects_topic)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(ReportOptions, argv, NAME, __doc__)
    require_file("--output", options.output)
    with spark_session(options, NAME) as spark:
        write(spark, options)
    print(f"{NAME}: {options.output}")
    return 0


def write(spark: SparkSession, options: ReportOptions) -> None:
    """Gather the numbers and write the page."""
    page = render(gather(spark, options))
    with writing("--output", options.output):
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(page, encoding="utf-8")


def gather(spark: SparkSession, options: ReportOptions) -> ReportNumbers:
    """Read all that the page shows."""
    definition = load_definition(options.definition, options.set)
    with open_topics(spark, options) as topics:
        names = topics.names()
        shown = dict.fromkeys((options.topic, *options.topics))
        if options.archive is not None and options.topic not in names:
            del shown[options.topic]
        for topic in shown:
            topics.require(topic, "name what to report on with --topic and --topics")
    reasons = {}
    if options.rejects() in names:
        reasons = reject_reasons(read_batch(spark, options, [options.rejects()]))
    by_event_time, valid, rejected = _event_times(spark, options, definition)
    with open_offsets(spark, options) as offsets:
        records = read_batch(spark, options, list(shown)) if shown else None
        numbers, by_append_time = ([], []) if records is None else topic_numbers(records, offsets)
        lags = group_lags(offsets, offsets.groups() if options.groups is None else options.groups)
    return ReportNumbers(
        title=options.title or f"Report on {options.topic}",
        made_at=as_time(spark.sql("SELECT unix_seconds(current_timestamp())").collect()[0][0]),
        source=options.topic if options.archive is None else str(options.archive),
        valid=valid,
        rejected=rejected if options.archive is None else sum(reasons.values()),
        by_event_time=by_event_time,
        topics=numbers,
        by_append_time=by_append_time,
        jobs=job_numbers(options.metrics),
        groups=lags,
        windows=_windows(spark, options, definition, names),
        reasons=reasons,
        rejects_topic=options.rejects(),
    )


def _event_times(
    spark: SparkSession, options: ReportOptions, definition: Definition
) -> tuple[Throughput | None, int, int]:
    if options.archive is None:
        rows = parsed(spark, read_batch(spark, options, [options.topic]), definition)
        is_rejected = F.col("rejection").isNotNull()
        return event_times(
            rows.select("event_time", is_rejected.alias("is_rejected")), options.topic
        )
    rows = read_archive(spark, options.archive)
    times = rows.select("event_time", F.lit(False).alias("is_rejected"))
    return event_times(times, options.topic)


def _windows(
    spark: SparkSession, options: ReportOptions, definition: Definition, names: frozenset[str]
) -> WindowNumbers | None:
    if not definition.has("report"):
        return None
    section = definition.section("report", ReportSection)
    if section.windows_topic not in names:
        return None
    return window_numbers(read_batch(spark, options, [section.windows_topic]), section)


if __name__ == "__main__":
    sys.exit(main())
