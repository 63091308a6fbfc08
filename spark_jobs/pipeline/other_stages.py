"""What the pipeline has the jobs do with website activity and with logs; and its page.

As in `flight_stages`, each stage counts what came of it and says a few words.
"""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.jobs import activity, logs, produce_activity, report
from spark_jobs.jobs.activity import ActivityOptions
from spark_jobs.jobs.collect_logs import CollectOptions, Collector
from spark_jobs.jobs.logs import LogsOptions
from spark_jobs.jobs.produce_activity import ActivityProducerOptions
from spark_jobs.jobs.report import ReportOptions
from spark_jobs.kafka.topics import open_topics
from spark_jobs.pipeline.tally_sources import count_sources
from spark_jobs.spark.streams import read_batch
from spark_jobs.tables.open_tables import open_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.pipeline.pipeline_run import Run

OWN_TOPICS = frozenset({"flights", "planes", "activity", "logs"})
"""First parts of the names of all topics that the pipeline writes."""

ACTIVITY = {"visitors": 5_000, "pace": 1.0, "late": 0.01, "malformed": 0.002}


def stage_activity(run: Run) -> str:
    """Make up visits of a website, and follow them."""
    made = run.options.of_job(
        ActivityProducerOptions, "activity", events=run.options.events, **ACTIVITY
    )
    outcome = produce_activity.produce(made)
    options = run.options.of_job(ActivityOptions, "activity", set={})
    words = run.queries("activity", activity.start(run.spark, options))
    valid = outcome.lines - outcome.damaged
    rejected = count_sources(read_batch(run.spark, options, [options.rejects()]))
    run.count("activity", "page views and malformed records", outcome.lines)
    run.count("activity", "rejected", rejected, outcome.damaged)
    of_hours = f"WHERE granularity = '{options.section().granularities[0]}'"

    def sums(name: str, *sql: str) -> Sequence[int]:
        table = open_table(run.spark, "--table", options.table / name)
        return table.read().selectExpr(*sql).collect()[0]

    (views,) = sums("pages", f"coalesce(sum(views) FILTER ({of_hours}), 0)")
    run.count("activity", "page views in windows of an hour", views, valid)
    closed, steps = sums("sessions", "count(1)", "coalesce(sum(events), 0)")
    run.count("activity", f"page views in {closed:,} sessions that have ended", steps)
    (ways,) = sums("transitions", f"coalesce(sum(times) FILTER ({of_hours}), 0)")
    run.count("activity", "ways from page to page, in and out", ways, steps + closed)
    return f"{outcome.sent:,} records sent; {words}"


def stage_logs(run: Run) -> str:
    """Collect the machine's package logs, and find out what their lines say."""
    options = run.options.of_job(LogsOptions, "logs", set={})
    before = run.records(options.topic)
    paths = [path for path in map(Path, run.options.logs) if os.access(path, os.R_OK)]
    if not paths and not before:
        return f"none of {', '.join(run.options.logs)} is there to be read"
    lines = package_log_lines(paths)
    collect = run.options.of_job(CollectOptions, "logs", files=tuple(map(str, paths)), metrics=None)
    collected = Collector(collect).run(threading.Event()) if paths else 0
    words = run.queries("logs", logs.start(run.spark, options))
    there = run.records(options.topic)
    run.count("logs", "lines of package logs, now, but empty ones", lines)
    run.count("logs", "lines collected", there, lines if before == 0 else before + collected)
    found = [
        count_sources(read_batch(run.spark, options, [topic]))
        for topic in (options.parsed(), options.rejects())
    ]
    run.count("logs", "lines of a known format", found[0])
    run.count("logs", "lines of none, kept whole", found[1])
    run.count("logs", "sum, each line once", sum(found), there)
    return f"{collected:,} lines collected; {words}"


def package_log_lines(paths: Sequence[Path]) -> int:
    """Count the lines of logs, rotated ones included, that have an end and are not empty."""
    lines = 0
    for path in paths:
        for file in path.parent.glob(f"{path.name}*"):
            content = (
                gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            )
            lines += sum(line != b"" for line in content.split(b"\n")[:-1])
    return lines


def stage_report(run: Run) -> str:
    """Write the page, about all topics that the pipeline has written, now or before."""
    options = run.options
    with open_topics(run.spark, options) as topics:
        shown = sorted(name for name in topics.names() if name.partition(".")[0] in OWN_TOPICS)
    files = tuple(sorted(options.metrics("").parent.glob("*.jsonl")))
    page = options.of_job(
        ReportOptions,
        "report",
        topics=tuple(shown),
        metrics=files,
        output=options.page,
        title="The flights of 2013",
    )
    report.write(run.spark, page)
    return str(options.page)
