"""Reading topics, writing topics, and running queries to their end: what all jobs share."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.rejects import KEEP_NULLS
from spark_jobs.errors import JobError, interrupt
from spark_jobs.paths import require_directory
from spark_jobs.spark.lost_records import tell_lost_records
from spark_jobs.spark.progress import Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

    from pyspark.errors.exceptions.base import StreamingQueryException
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from spark_jobs.options import SparkOptions, StreamOptions

POLL_SECONDS = 0.25
STOP_POLL_SECONDS = 0.02
STOP_SECONDS = 60.0
"""How long a batch under way may take when a signal asked for the end."""

IN_A_BATCH = frozenset({"Processing new data", "No new data but cleaning up state"})
"""What Spark says a query does while a batch runs; before it looks for data, and after it waits."""

READER_SETTINGS = {"isolation.level": "read_committed", "allow.auto.create.topics": "false"}
"""What an aborted transaction wrote is no record; one that is open holds up what is behind it. And
a topic that is deleted under a reader stays deleted."""

WRITER_SETTINGS = {"compression.type": "lz4", "linger.ms": "20", "batch.size": "131072"}


def read_stream(spark: SparkSession, options: StreamOptions, topic: str) -> DataFrame:
    """Return the records of a topic as a stream, from the earliest on.

    A record that is gone before it was read stops the query unless `on_data_loss` says otherwise:
    nothing is lost silently.
    """
    reader = spark.readStream.format("kafka").options(**_kafka(options, READER_SETTINGS))
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    reader = reader.option("failOnDataLoss", str(options.on_data_loss == "fail").lower())
    if options.max_offsets_per_trigger is not None:
        reader = reader.option("maxOffsetsPerTrigger", options.max_offsets_per_trigger)
    return reader.load()


def read_batch(
    spark: SparkSession,
    options: SparkOptions,
    topics: Sequence[str],
    starting: Mapping[str, Mapping[int, int]] | None = None,
    ending: Mapping[str, Mapping[int, int]] | None = None,
) -> DataFrame:
    """Return what topics hold now, headers included: all, or from offsets to before offsets.

    Offsets are by topic and partition, and name every partition.
    """
    reader = spark.read.format("kafka").options(**_kafka(options, READER_SETTINGS))
    reader = reader.option("subscribe", ",".join(topics)).option("includeHeaders", "true")
    for name, offsets in (("startingOffsets", starting), ("endingOffsets", ending)):
        if offsets is not None:
            reader = reader.option(name, json.dumps(offsets))
    return reader.load()


def start_query(
    records: DataFrame, options: StreamOptions, name: str, output_mode: str = "append"
) -> StreamingQuery:
    """Start writing `records` (key, value, topic, and headers if any) with a checkpoint.

    The sink is at-least-once: a batch that was interrupted is written again, whole.
    """
    writer = records.writeStream.format("kafka").outputMode(output_mode)
    writer = writer.options(**_kafka(options, WRITER_SETTINGS))
    writer = writer.option("includeHeaders", str("headers" in records.columns).lower())
    return _start(writer, records.sparkSession, options, name)


def start_batches(
    rows: DataFrame,
    options: StreamOptions,
    name: str,
    take: Callable[[DataFrame, int], None],
    output_mode: str = "append",
) -> StreamingQuery:
    """Start handing each batch of `rows`, with its number, to `take`, which runs in the driver.

    A batch that was interrupted comes again, with the same number and the same rows: what
    `take` writes is exactly-once if writing a number twice leaves what writing it once does. An
    exception of `take` ends the query.
    """
    writer = rows.writeStream.foreachBatch(take).outputMode(output_mode)
    return _start(writer, rows.sparkSession, options, name)


def records_of(
    rows: DataFrame, key: Sequence[str], topic: str, json_options: str = KEEP_NULLS
) -> DataFrame:
    """Return rows as records to write to `topic`: JSON, with the columns `key` as the key."""

    def json_of(names: Sequence[str]) -> Column:
        listed = ", ".join(f"`{name}`" for name in names)
        return F.expr(f"to_json(struct({listed}), {json_options})").cast("binary")

    return rows.select(
        json_of(key).alias("key"), json_of(rows.columns).alias("value"), F.lit(topic).alias("topic")
    )


@contextmanager
def persisted(rows: DataFrame) -> Iterator[DataFrame]:
    """Keep rows meanwhile, so that what reads them twice computes them once."""
    rows.persist()
    try:
        yield rows
    finally:
        rows.unpersist()


def write_batch(records: DataFrame, options: SparkOptions) -> None:
    """Write `records` (key, value, topic, and headers if any) now, for use inside a batch."""
    writer = records.write.format("kafka").options(**_kafka(options, WRITER_SETTINGS))
    writer.option("includeHeaders", str("headers" in records.columns).lower()).save()


def _start(
    writer: DataStreamWriter, spark: SparkSession, options: StreamOptions, name: str
) -> StreamingQuery:
    writer = writer.queryName(name)
    writer = writer.option("checkpointLocation", str(options.checkpoint.absolute() / name))
    if options.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{options.trigger_seconds} seconds")
    require_directory("--checkpoint", options.checkpoint)
    if options.on_data_loss == "record":
        tell_lost_records(spark, options, name)
    try:
        return writer.start()
    except (PySparkException, Py4JJavaError) as error:
        raise JobError(f"query {name}: {_first_line(error)}") from error


def run(queries: Sequence[StreamingQuery], options: StreamOptions) -> dict[str, int]:
    """Run queries to their end or, without `once`, until stopped; return rows read by each."""
    wait = run_to_end if options.once else run_until_stopped
    return wait(queries, options.metrics)


def run_to_end(queries: Sequence[StreamingQuery], metrics: Path | None = None) -> dict[str, int]:
    """Wait until all queries end; return rows read by each.

    SIGTERM and Ctrl-C interrupt the job, after the batches under way. Raises `JobError` when a
    query fails.
    """
    rows, signal_number = _follow(queries, metrics)
    if signal_number:
        interrupt(signal_number)
    return rows


def run_until_stopped(
    queries: Sequence[StreamingQuery], metrics: Path | None = None
) -> dict[str, int]:
    """Wait until SIGTERM or Ctrl-C ends the queries; return rows read by each.

    Raises `JobError` when a query fails.
    """
    rows, _ = _follow(queries, metrics)
    return rows


def _follow(queries: Sequence[StreamingQuery], metrics: Path | None) -> tuple[dict[str, int], int]:
    """Show and note how far the queries are; return rows, and the signal if one came."""
    with _stop_requested() as stop:
        try:
            return _follow_until(stop, queries, metrics), stop.number
        except (Py4JError, ConnectionError):
            if stop.number:  # it came to the whole process group, and Spark's JVM has ended of it
                interrupt(stop.number)
            raise


def _follow_until(
    stop: _Stop, queries: Sequence[StreamingQuery], metrics: Path | None
) -> dict[str, int]:
    with Follower(queries, metrics) as follower:
        while True:
            follower.look()
            if stop.number or not all(query.isActive for query in queries):
                _raise_failure(queries)
                if stop.number or not any(query.isActive for query in queries):
                    break
            stop.event.wait(POLL_SECONDS)
        _stop_after_batches(stop, queries, follower)
        follower.look()
        return follower.rows()


def _stop_after_batches(stop: _Stop, queries: Sequence[StreamingQuery], follower: Follower) -> None:
    """Stop each query when its batch under way has ended; at once when another signal comes.

    Spark's own stop interrupts the batch, which would be done again by the next run, and what it
    has written to topics would be there twice. After `STOP_SECONDS` that is how it ends, too.
    """
    left, before = list(queries), follower.batches()
    end = time.monotonic() + STOP_SECONDS
    if sys.stderr.isatty() and any(_is_in_a_batch(query) for query in left):
        print("ending after the batch under way; another signal ends it now", file=sys.stderr)
    while left:
        _raise_failure(left)
        follower.look()
        is_over = stop.signals > 1 or time.monotonic() >= end
        for query in list(left):
            has_ended = follower.batches()[query.name] > before[query.name]
            if is_over or has_ended or not _is_in_a_batch(query):
                query.stop()
                left.remove(query)
        time.sleep(STOP_POLL_SECONDS if left else 0)


def _is_in_a_batch(query: StreamingQuery) -> bool:
    status = query.status
    return bool(status["isTriggerActive"]) and status["message"] in IN_A_BATCH


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
    words = re.sub(r"^spark_jobs\.\w+\.\w+Error: ", "", words)
    hints = [
        hint for pattern, hint in _HINTS.items() if re.search(pattern, str(failure), re.IGNORECASE)
    ]
    return " - ".join((words, *hints))


_HINTS = {
    "some data may (have been|be) (missed|lost)": (
        "the topic holds less than the checkpoint remembers: it was deleted, truncated or"
        " expired, or the checkpoint belongs to another broker. Use another --checkpoint, or go on"
        " without what is gone: --on-data-loss record"
    ),
    "UnknownTopicOrPartitionException": "a topic of the query was deleted",
    "RecordTooLargeException": "a target topic takes smaller records only: max.message.bytes",
}
"""What to tell a person, by what Spark or its clients say."""


def _kafka(options: SparkOptions, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
    settings = {**(defaults or {}), **options.kafka}
    settings["bootstrap.servers"] = options.bootstrap_servers
    return {f"kafka.{key}": value for key, value in settings.items()}


@dataclass(slots=True)
class _Stop:
    """Whether a signal asked for the end, and which."""

    event: threading.Event = field(default_factory=threading.Event)
    number: int = 0
    signals: int = 0
    """How many came."""


@contextmanager
def _stop_requested() -> Iterator[_Stop]:
    """Note SIGTERM and Ctrl-C instead of ending at once, so that queries end after their batch."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        stop.number = signal_number
        stop.signals += 1
        stop.event.set()

    kept = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
