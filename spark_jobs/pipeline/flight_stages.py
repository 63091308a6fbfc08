"""What the pipeline has the jobs do with flights, and how it counts what came of it.

A stage runs a job to its end, counts what the job wrote by reading it back, and notes the counts
with what they must be. It returns a few words for the line on the terminal.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_table import read_archive
from spark_jobs.jobs import (
    aggregate,
    archive,
    enrich,
    produce_flights,
    produce_planes,
    retry,
    route,
)
from spark_jobs.jobs.aggregate import AggregateOptions
from spark_jobs.jobs.archive import ArchiveOptions
from spark_jobs.jobs.audit import AuditOptions, audit
from spark_jobs.jobs.enrich import EnrichOptions
from spark_jobs.jobs.produce_flights import ProduceOptions
from spark_jobs.jobs.produce_planes import PlanesOptions
from spark_jobs.jobs.retry import RetryOptions
from spark_jobs.jobs.route import REJECTED, RouteOptions
from spark_jobs.pipeline import overview_plot
from spark_jobs.pipeline.tally import tally_routes, tally_windows
from spark_jobs.pipeline.tally_sources import count_sources, tally_enriched
from spark_jobs.retry.retry_records import RetrySection
from spark_jobs.spark.streams import read_batch
from spark_jobs.tables.open_tables import open_table

if TYPE_CHECKING:
    from spark_jobs.pipeline.pipeline_run import Run

PLANES = "planes"
NOT_ENRICHED = "flights.not-enriched"
DELAYS_BEFORE_RETRY = ("1 second", "2 seconds")
LONGEST_RETRY_SECONDS = 120.0
PAUSE_SECONDS = 0.5


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
        rows = open_table(run.spark, "--table", options.table / name).read()
        for length, flights in rows.groupBy("granularity").agg({"flights": "sum"}).collect():
            run.count("aggregate", f"flights in the table {name}, {length}", flights, run.valid)
    overview_plot.draw(tally.hours, run.options.picture)
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
    return words


def stage_retry(run: Run) -> str:
    """Try the rejected flights again, twice, until each is a dead letter or broke no rule."""
    options = run.options.of_job(RetryOptions, "retry", delays=DELAYS_BEFORE_RETRY)
    rejected = count_sources(read_batch(run.spark, options, [options.rejects()]))
    stop = threading.Event()
    deadline = time.monotonic() + LONGEST_RETRY_SECONDS
    taken = retry.retry(run.spark, options, stop)
    while (ends := _ends(run, options))[0] + ends[1] < rejected and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
        taken += retry.retry(run.spark, options, stop)
    run.count("retry", "flights that break no rule any more", ends[0])
    run.count("retry", "dead letters", ends[1])
    run.count("retry", "sum, each reject once", sum(ends), rejected)
    tried = F.get_json_object(F.col("value").cast("string"), "$.attempts") == len(options.delays)
    letters = read_batch(run.spark, options, [options.dead()]).where(tried)
    expected = None
    if run.outcome is not None and not ends[0]:
        wanted = options.load_definition().section("retry", RetrySection).reasons
        expected = sum(run.outcome.reasons[reason] for reason in wanted)
    run.count(
        "retry", "dead letters that were tried again, twice", count_sources(letters), expected
    )
    return f"{taken:,} records taken"


def _ends(run: Run, options: RetryOptions) -> tuple[int, int]:
    ways = options.ways()
    good, dead = (
        count_sources(read_batch(run.spark, options, [topic])) for topic in (ways.target, ways.dead)
    )
    return good, dead
