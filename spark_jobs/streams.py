"""Reading topics, writing topics, and running queries to their end: what all jobs share."""

from __future__ import annotations

import re
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from spark_jobs.errors import JobError, interrupt
from spark_jobs.places import require_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from pyspark.errors.exceptions.base import StreamingQueryException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.options import SparkOptions, StreamOptions

POLL_SECONDS = 0.25
WRITER_SETTINGS = {"compression.type": "lz4", "linger.ms": "20", "batch.size": "131072"}


def read_stream(spark: SparkSession, options: StreamOptions, topic: str) -> DataFrame:
    """Return the records of a topic as a stream, from the earliest on.

    A record that is gone before it was read stops the query: nothing is lost silently.
    """
    reader = spark.readStream.format("kafka").options(**_kafka(options))
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    if options.max_offsets_per_trigger is not None:
        reader = reader.option("maxOffsetsPerTrigger", options.max_offsets_per_trigger)
    return reader.load()


def read_batch(spark: SparkSession, options: SparkOptions, topics: Sequence[str]) -> DataFrame:
    """Return all that topics hold now, headers included."""
    reader = spark.read.format("kafka").options(**_kafka(options))
    return reader.option("subscribe", ",".join(topics)).option("includeHeaders", "true").load()


def start_query(
    records: DataFrame, options: StreamOptions, name: str, output_mode: str = "append"
) -> StreamingQuery:
    """Start writing `records` (key, value, topic, and headers if any) with a checkpoint.

    The sink is at-least-once: a batch that was interrupted is written again, whole.
    """
    writer = records.writeStream.format("kafka").queryName(name).outputMode(output_mode)
    writer = writer.options(**_kafka(options, WRITER_SETTINGS))
    writer = writer.option("includeHeaders", str("headers" in records.columns).lower())
    writer = writer.option("checkpointLocation", str(options.checkpoint.absolute() / name))
    if options.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{options.trigger_seconds} seconds")
    require_directory("--checkpoint", options.checkpoint)
    try:
        return writer.start()
    except (PySparkException, Py4JJavaError) as error:
        raise JobError(f"query {name}: {_first_line(error)}") from error


def run(queries: Sequence[StreamingQuery], options: StreamOptions) -> dict[str, int]:
    """Run queries to their end or, without `once`, until stopped; return rows read by each."""
    return run_to_end(queries) if options.once else run_until_stopped(queries)


def run_to_end(queries: Sequence[StreamingQuery]) -> dict[str, int]:
    """Wait until all queries end; return rows read by each.

    SIGTERM and Ctrl-C interrupt the job, after the batches under way. Raises `JobError` when a
    query fails.
    """
    rows, signal_number = _follow(queries)
    if signal_number:
        interrupt(signal_number)
    return rows


def run_until_stopped(queries: Sequence[StreamingQuery]) -> dict[str, int]:
    """Wait until SIGTERM or Ctrl-C ends the queries; return rows read by each.

    Raises `JobError` when a query fails.
    """
    rows, _ = _follow(queries)
    return rows


def _follow(queries: Sequence[StreamingQuery]) -> tuple[dict[str, int], int]:
    """Show a line per query while a terminal is there; return rows, and the signal if one came."""
    rows: dict[str, dict[int, int]] = {query.name: {} for query in queries}
    with _stop_requested() as stop, _progress() as progress:
        tasks = {query.name: progress.add_task(query.name, rows=0) for query in queries}
        while True:
            for query in queries:
                _note_progress(query, rows[query.name])
                progress.update(tasks[query.name], rows=sum(rows[query.name].values()))
            if stop.number or not all(query.isActive for query in queries):
                _raise_failure(queries)
                if stop.number or not any(query.isActive for query in queries):
                    break
            stop.event.wait(POLL_SECONDS)
        for query in queries:
            query.stop()
            _note_progress(query, rows[query.name])
    return {name: sum(batches.values()) for name, batches in rows.items()}, stop.number


def _note_progress(query: StreamingQuery, batches: dict[int, int]) -> None:
    for report in query.recentProgress:
        batches[report.batchId] = report.numInputRows


def _raise_failure(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        failure = query.exception()
        if failure is not None:
            for other in queries:
                other.stop()
            raise JobError(f"query {query.name} failed: {failure_reason(failure)}")


def failure_reason(failure: StreamingQueryException | Exception) -> str:
    """Return the one line of a failed query that tells a person most."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    causes = [line for line in lines if "Exception:" in line or "Error:" in line]
    words = (causes[-1] if causes else lines[0]) if lines else type(failure).__name__
    if re.search(r"some data may (have been|be) (missed|lost)", str(failure), re.IGNORECASE):
        words += (
            " - the topic holds less than the checkpoint remembers: it was deleted, truncated or"
            " expired, or the checkpoint belongs to another broker. Use another --checkpoint"
        )
    return words


def _kafka(options: SparkOptions, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
    settings = {**(defaults or {}), **options.kafka}
    settings["bootstrap.servers"] = options.bootstrap_servers
    return {f"kafka.{key}": value for key, value in settings.items()}


@dataclass(slots=True)
class _Stop:
    """Whether a signal asked for the end, and which."""

    event: threading.Event = field(default_factory=threading.Event)
    number: int = 0


@contextmanager
def _stop_requested() -> Iterator[_Stop]:
    """Note SIGTERM and Ctrl-C instead of ending at once, so that queries end after their batch."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        stop.number = signal_number
        stop.event.set()

    kept = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[rows]:,} records"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
