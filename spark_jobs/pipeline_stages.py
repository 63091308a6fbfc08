"""What the pipeline has each job do, and how it counts what came of it.

A stage runs a job to its end, counts what the job wrote by reading it back, and notes the counts
with what they must be. It returns a few words for the line on the terminal.
"""

from __future__ import annotations

import gzip
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs import (
    aggregate,
    archive,
    enrich,
    logs,
    picture,
    produce_flights,
    produce_planes,
    report,
    route,
)
from spark_jobs.aggregate import AggregateOptions
from spark_jobs.archive import ArchiveOptions
from spark_jobs.archive_reading import read_archive
from spark_jobs.audit import AuditOptions, audit
from spark_jobs.balance import Balance, Count
from spark_jobs.collect_logs import CollectOptions, Collector
from spark_jobs.enrich import EnrichOptions
from spark_jobs.logs import LogsOptions
from spark_jobs.produce_flights import ProduceOptions
from spark_jobs.produce_planes import PlanesOptions
from spark_jobs.report import ReportOptions
from spark_jobs.route import REJECTED, RouteOptions
from spark_jobs.streams import read_batch, run_to_end
from spark_jobs.tally import DELAYS, tally_routes, tally_windows
from spark_jobs.tally_sources import count_sources, tally_enriched
from spark_jobs.topics import open_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.pipeline_options import PipelineOptions
    from spark_jobs.produce_flights import Outcome

TOPIC, PLANES = "flights", "planes"
NOT_ENRICHED = "flights.not-enriched"


@dataclass(slots=True)
class Run:
    """A run of the pipeline: what its stages share."""

    options: PipelineOptions
    spark: SparkSession
    balance: Balance = field(default_factory=Balance)
    outcome: Outcome | None = None
    """What producing flights came to."""

    valid: int | None = None
    """Flights that break no rule, as `route` found them."""

    topics: list[str] = field(default_factory=list)
    """Topics that jobs have written to, for the report."""

    def count(self, job: str, what: str, found: int, expected: int | None = None) -> None:
        """Note a count."""
        self.balance.counts.append(Count(job, what, found, expected))

    def queries(self, job: str, queries: Sequence[StreamingQuery]) -> str:
        """Run queries to their end, and say what they took in."""
        rows = run_to_end(queries, self.options.metrics(job))
        return "; ".join(f"{name} {count:,}" for name, count in rows.items())


def stage_produce(run: Run) -> str:
    """Produce the flights and the planes."""
    run.outcome = produce_flights.produce(run.options.of_job(ProduceOptions, "produce"))
    planes, sent = produce_planes.produce(run.options.of_job(PlanesOptions, "produce"))
    outcome = run.outcome
    run.count("produce", "flights and damaged lines between them", outcome.lines)
    run.count("produce", "planes", planes)
    return (
        f"{outcome.sent + sent:,} records, {outcome.already_there + planes - sent:,} were there "
        "before"
    )


def stage_route(run: Run) -> str:
    """Route the flights, and match each record of the source with those that came of it."""
    options = run.options.of_job(RouteOptions, "route")
    words = run.queries("route", route.start(run.spark, options))
    tally = tally_routes(run.spark, options)
    targets = options.targets()
    for name, records in tally.routed.items():
        run.count("route", targets[name], records)
    total = sum(tally.routed.values())
    run.count("route", "sum, each record of the source once", total, tally.source)
    run.count("route", "records of the source in no topic, or in two", tally.lost + tally.strays, 0)
    if run.outcome is not None:
        run.count("route", "records in the source", tally.source, run.outcome.lines)
        for reason, records in sorted(run.outcome.reasons.items()):
            run.count("route", f"rejected: {reason}", tally.reasons.get(reason, 0), records)
    run.count("route", "copies after interruptions", tally.copies)
    run.valid = total - tally.routed[REJECTED]
    run.topics += targets.values()
    return words


def stage_aggregate(run: Run) -> str:
    """Put the flights into windows, and add up what the windows hold."""
    options = run.options.of_job(AggregateOptions, "aggregate", keep_rejects=False)
    words = run.queries("aggregate", aggregate.start(run.spark, options))
    tally = tally_windows(run.spark, options)
    run.count(
        "aggregate", f"flights in {tally.windows:,} windows of an hour", tally.flights, run.valid
    )
    for name in options.aggregates():
        sums: dict[str, int] = {}
        for row in options.table_of(name).rows():
            length = row["granularity"]
            sums[length] = sums.get(length, 0) + row["flights"]
        for length, flights in sums.items():
            run.count("aggregate", f"flights in the table {name}, {length}", flights, run.valid)
    picture.draw(tally.hours, run.options.picture)
    run.topics.append(options.aggregates()[DELAYS].topic)
    return words


def stage_archive(run: Run) -> str:
    """Archive the flights, and read them back."""
    options = run.options.of_job(ArchiveOptions, "archive", send_rejects=False)
    words = run.queries("archive", archive.start(run.spark, options))
    rows = read_archive(run.spark, options.directory)
    run.count("archive", "flights in the archive", rows.count(), run.valid)
    return words


def stage_audit(run: Run) -> str:
    """Compare the topic with the archive."""
    options = run.options.of_job(AuditOptions, "audit", rejects_of=("route",))
    findings = audit(run.spark, options)
    records = findings.total("records")
    lines = None if run.outcome is None else run.outcome.lines
    run.count("audit", "records compared", records, lines)
    run.count(
        "audit",
        "archived once, or rejected",
        findings.total("archived") + findings.total("rejected"),
        records,
    )
    wrong = ("missing", "behind", "doubled", "differing", "damaged", "stray")
    run.count("audit", "gaps, doubles and differences", sum(map(findings.total, wrong)), 0)
    return f"{findings.keys:,} keys"


def stage_enrich(run: Run) -> str:
    """Join the flights with their planes."""
    options = run.options.of_job(
        EnrichOptions, "enrich", table_topic=PLANES, rejects_topic=NOT_ENRICHED
    )
    words = run.queries("enrich", enrich.start(run.spark, options))
    joined, alone = tally_enriched(read_batch(run.spark, options, [options.target()]))
    run.count("enrich", "flights with their plane", joined)
    run.count("enrich", "flights whose plane is not in the table", alone)
    run.count("enrich", "sum, each flight once", joined + alone, run.valid)
    run.topics.append(options.target())
    return words


def stage_logs(run: Run) -> str:
    """Collect the machine's package logs, and find out what their lines say."""
    options = run.options.of_job(LogsOptions, "logs", set={})
    before = _records(run, options.topic)
    paths = [path for path in map(Path, run.options.logs) if os.access(path, os.R_OK)]
    if not paths and not before:
        return f"none of {', '.join(run.options.logs)} is there to be read"
    lines = package_log_lines(paths)
    collect = run.options.of_job(CollectOptions, "logs", files=tuple(map(str, paths)), metrics=None)
    collected = Collector(collect).run(threading.Event()) if paths else 0
    words = run.queries("logs", logs.start(run.spark, options))
    there = _records(run, options.topic)
    run.count("logs", "lines of package logs, now", lines)
    run.count("logs", "lines collected", there, lines if before == 0 else before + collected)
    found = [
        count_sources(read_batch(run.spark, options, [topic]))
        for topic in (options.parsed(), options.rejects())
    ]
    run.count("logs", "lines of a known format", found[0])
    run.count("logs", "lines of none, kept whole", found[1])
    run.count("logs", "sum, each line once", sum(found), there)
    run.topics += [options.topic, options.parsed()]
    return f"{collected:,} lines collected; {words}"


def _records(run: Run, topic: str) -> int:
    """Return how many records a topic holds; 0 if it is not there."""
    with open_topics(run.spark, run.options) as topics:
        if topic not in topics.names():
            return 0
    return read_batch(run.spark, run.options, [topic]).count()


def package_log_lines(paths: Sequence[Path]) -> int:
    """Count the lines of logs, rotated ones included, that have an end."""
    lines = 0
    for path in paths:
        for file in path.parent.glob(f"{path.name}*"):
            content = (
                gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            )
            lines += content.count(b"\n")
    return lines


def stage_report(run: Run) -> str:
    """Write the page."""
    options = run.options
    files = tuple(sorted(options.metrics("").parent.glob("*.jsonl")))
    page = options.of_job(
        ReportOptions,
        "report",
        topics=tuple(run.topics),
        metrics=files,
        output=options.page,
        title="The flights of 2013",
    )
    report.write(run.spark, page)
    return str(options.page)


STAGES: dict[str, Callable[[Run], str]] = {
    "produce": stage_produce,
    "route": stage_route,
    "aggregate": stage_aggregate,
    "archive": stage_archive,
    "audit": stage_audit,
    "enrich": stage_enrich,
    "logs": stage_logs,
    "report": stage_report,
}
"""By the names of `pipeline_options.JOBS`."""
