"""Job: validate each record, add names to its codes, and send it to its topic.

    TOPIC  ->  the topic of the first route whose condition holds      [route] of the definition
           ->  TOPIC.rejected      it breaks a rule, or no route takes it; with the reason

What a record must be, what is added to it, where it goes and what it goes on as stand in the
definition file (`definition`, `routes`, `outputs`). With the built-in one, `flights`:

    flights  ->  flights.on-time     it arrived, less than 15 minutes after schedule
                 flights.delayed     it arrived 15 minutes or more after schedule, or it left
                                     and no arrival delay is known (diverted, not reported)
                 flights.cancelled   it never left
                 flights.rejected    it breaks a rule; with the reason, and the text as it came

A flight goes on with the key it came with and as JSON with all its fields, `airline_name`,
`origin_name`, `dest_name`, `event_time` (scheduled departure, UTC), `route`, and `source` (topic,
partition and offset it came from). What a reject is, `rejects` says.

Every record of the source goes to exactly one topic (none, if the definition filters its route
out), and which one depends on nothing but the record and, for a limit on event times ahead of the
clock, the time of its batch. Spark's sink is at-least-once: after a batch was interrupted, its
records may be there twice. So each carries the header `source` (`flights/0/123`), equal for equal
copies: who needs each record once counts or keeps distinct sources, as `tally` does.

When the source topic is grown by partitions, those are read from their first record on. When it
is deleted, or loses records before they were read, the job ends and says so; what it had written
stays. A topic of the same name made anew needs another `--checkpoint`, as does another broker.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.outputs import rejection_sql, written
from spark_jobs.definitions.routes import (
    RouteSection,
    require_routes,
    route_sql,
    routed_json_sql,
    routed_key_sql,
    topic_sql,
)
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import exit_code_of
from spark_jobs.kafka.topics import open_topics
from spark_jobs.options import TOPIC_HINT, DefinitionOptions, parse_options
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import read_stream, run, start_query, write_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.definitions.definition import Definition

NAME = "route"
REJECTED = "rejected"


class RouteOptions(DefinitionOptions):
    """Options of the routing job."""

    def targets(self) -> dict[str, str]:
        """Return the topic of each route, and that of rejected records."""
        section = self.load_definition().section("route", RouteSection)
        return section.topics() | {REJECTED: self.rejects()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(RouteOptions, argv, NAME, __doc__)
    options.targets()  # a mistake in the file is told before Spark starts
    with spark_session(options, NAME) as spark:
        rows = run(start(spark, options), options)
    print(f"{NAME}: {rows[NAME]:,} records routed")
    return 0


def start(spark: SparkSession, options: RouteOptions) -> list[StreamingQuery]:
    """Start the query, creating the target topics that are not there."""
    definition = options.load_definition()
    with open_topics(spark, options) as topics:
        topics.require(options.topic, TOPIC_HINT)
        claim_checkpoint(options.checkpoint / NAME, topics.identity(NAME, options.topic))
        topics.create_missing(options.targets().values(), options.partitions, {})
    rows = parsed(spark, read_stream(spark, options, options.topic), definition)
    return [start_query(routed(rows, definition, options), options, NAME)]


def take(spark: SparkSession, records: DataFrame, options: RouteOptions) -> None:
    """Route a batch of Kafka records, creating the target topics that are not there."""
    definition = options.load_definition()
    with open_topics(spark, options) as topics:
        topics.create_missing(options.targets().values(), options.partitions, {})
    write_batch(routed(parsed(spark, records, definition), definition, options), options)


def routed(rows: DataFrame, definition: Definition, options: RouteOptions) -> DataFrame:
    """Return what becomes of parsed records: key, value, topic and headers to write.

    Raises `BadOptionError` that names the expression of the definition which Spark refuses.
    """
    section = definition.section("route", RouteSection)
    require_routes(rows, definition, section)
    route = f"CASE WHEN rejection IS NULL THEN {route_sql(section)} END"
    rows = (
        rows.withColumn("route", F.expr(route))
        .withColumn("output", F.expr(routed_json_sql(section, definition.record)))
        .withColumn("output_key", F.expr(routed_key_sql(section)))
        .withColumn("rejection", F.expr(rejection_sql(section.max_bytes, _NO_ROUTE)))
    )
    if len(section.topics()) < len(section.routes):
        rows = rows.where(F.expr(f"rejection IS NOT NULL OR {topic_sql(section)} IS NOT NULL"))
    return written(rows, NAME, topic_sql(section), options.rejects())


_NO_ROUTE = (
    "WHEN route IS NULL THEN named_struct('reason', 'no-route', 'detail', 'no route takes it')"
)

if __name__ == "__main__":
    sys.exit(main())
