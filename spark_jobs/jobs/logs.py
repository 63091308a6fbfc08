"""Job: parse the lines that collect_logs produced, and monitor their error rate.

    logs  ->  logs.parsed      a JSON object per line: format, time, level, and what the format has
          ->  logs.rejected    lines that no format knows, whole, with the reason `unknown-format`
          ->  logs.errors      lines, errors and warnings per log and window of time; compacted
          ->  TABLE/errors     the same windows as a table of Delta Lake or Iceberg

`collect_logs` fills the topic; a line's key, `COLLECTOR:PATH`, is its log. Formats stand in the
definition (`log_formats`); the built-in one knows dpkg.log, apt's history.log and term.log, access
logs of Apache and nginx, syslog of RFC 3164 and 5424, Python's logging, and this broker's own.

Every line goes to one of the first two topics, with the header `source`; an interruption may
write copies, which have the same header. Windows are of the time that lines tell, by the
definition's aggregates: lines without one, and those that would be from later than a day after
they were collected, are in none. A window is written again each time it changes, under the same
key. One that ended longer ago than the watermark, counted from the latest line of all logs, is
closed: logs of very different times want `--max-offsets-per-trigger` to be left out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from spark_jobs.definitions.log_formats import LogSection, parsed_lines
from spark_jobs.definitions.outputs import written
from spark_jobs.errors import exit_code_of
from spark_jobs.kafka.topics import COMPACTED, open_topics
from spark_jobs.options import TopicName, parse_options
from spark_jobs.program import PROGRAM
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import read_stream, run, start_query, write_batch
from spark_jobs.spark.window_queries import WindowOptions, made_with, start_windows, take_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.definitions.window_aggregates import Aggregate
    from spark_jobs.kafka.topics import Topics

NAME = "logs"
HINT = f"fill it with `{PROGRAM} collect_logs`, or name the one to read with --topic"


class LogsOptions(WindowOptions):
    """Options of the job that reads lines."""

    topic: TopicName = "logs"
    """topic to read"""

    definition: str = "logs"
    """TOML file that says which formats there are, or the name of one that is built in"""

    parsed_topic: TopicName | None = None
    """topic for lines of a known format; TOPIC.parsed if not given"""

    def parsed(self) -> str:
        """Return the topic of lines of a known format."""
        return self.parsed_topic or f"{self.topic}.parsed"

    def aggregates(self) -> dict[str, Aggregate]:
        """Return the definition's aggregates by name."""
        has_some = self.load_definition().has("aggregate")
        return super().aggregates() if has_some or self.only else {}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(LogsOptions, argv, NAME, __doc__)
    options.load_definition().section("logs", LogSection)  # mistakes are told before Spark starts
    options.aggregates()
    with spark_session(options, NAME) as spark:
        rows = run(start(spark, options), options)
    print(f"{NAME}: {rows[NAME]:,} lines taken in, parsed or kept as rejects")
    return 0


def start(spark: SparkSession, options: LogsOptions) -> list[StreamingQuery]:
    """Start a query for the lines and one for each aggregate, creating topics not there."""
    definition = options.load_definition()
    with open_topics(spark, options) as topics:
        topics.require(options.topic, HINT)
        made = {query_name(name): made_with(one) for name, one in options.aggregates().items()}
        for query in (NAME, *made):
            identity = topics.identity(query, options.topic)
            claim_checkpoint(options.checkpoint / query, identity | made.get(query, {}))
        _create_missing(topics, options)
    lines = parsed_lines(read_stream(spark, options, options.topic), definition)
    queries = [start_query(lines_written(lines, options), options, NAME)]
    for name in options.aggregates():
        rows = parsed_lines(read_stream(spark, options, options.topic), definition)
        queries.append(start_windows(spark, rows, options, name, query_name(name)))
    return queries


def take(spark: SparkSession, records: DataFrame, options: LogsOptions) -> None:
    """Parse a batch of collected lines; windows then hold what the batch does.

    The tables must be others than a stream's.
    """
    definition = options.load_definition()
    with open_topics(spark, options) as topics:
        _create_missing(topics, options)
    rows = parsed_lines(records, definition)
    write_batch(lines_written(rows, options), options)
    for name in options.aggregates():
        take_windows(spark, rows, options, name)


def query_name(aggregate: str) -> str:
    """Return the name of an aggregate's query, and of its directory below `--checkpoint`."""
    return f"{NAME}-{aggregate}"


def lines_written(lines: DataFrame, options: LogsOptions) -> DataFrame:
    """Return what to write of parsed lines: key, value, topic and headers."""
    return written(lines, NAME, f"'{options.parsed()}'", options.rejects())


def _create_missing(topics: Topics, options: LogsOptions) -> None:
    topics.create_missing([options.parsed(), options.rejects()], options.partitions, {})
    windows = [aggregate.topic for aggregate in options.aggregates().values()]
    topics.create_missing(windows, options.partitions, COMPACTED)


if __name__ == "__main__":
    sys.exit(main())
