"""Job: retry rejected records at growing intervals, then keep them as dead letters.

    TOPIC.rejected  ->  TOPIC.retry.1   waits for the first of --delays, is tried again,
                        TOPIC.retry.2   waits for the second, and so on
                    ->  TOPIC.retried   breaks no rule any more: value and key as they were
                    ->  TOPIC.dead      does after the last delay; or breaks another rule
    TOPIC.dead      ->  its origin      with --replay: each dead letter once, then the job ends

Which reasons are worth another attempt stands in the definition ([retry] reasons): such as an
unknown airline, which is known as soon as it is in the table. Tables are read anew for each batch.
What each of the topics holds, and its headers, `retry_records` says.

A record is never tried before its time, however often the job is started anew, and the records of
a partition of a retry topic are tried in their order. Each attempt leads to one record in one
topic, also when the job is killed (`retry_batches`). What the job that rejected wrote twice comes
through twice, with the same header `source`.

`--once` tries what is due now, and ends.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pydantic import Field
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from rich.console import Console

from spark_jobs.errors import JobError, exit_code_of
from spark_jobs.kafka.offsets import Offsets, open_offsets
from spark_jobs.kafka.topics import open_topics
from spark_jobs.options import DefinitionOptions, Duration, TopicName, parse_options
from spark_jobs.orderly_stop import stop_event
from spark_jobs.paths import require_file, writing
from spark_jobs.retry.replay import replay
from spark_jobs.retry.retry_batches import (
    Batch,
    Ends,
    Journal,
    ends_of,
    limited,
    lost_between,
    next_batch,
)
from spark_jobs.retry.retry_records import RetrySection, Ways, decided, source_of
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.lost_records import tell_lost
from spark_jobs.spark.progress import BatchReport
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import failure_reason, read_batch, write_batch

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

NAME = "retry"
HINT = "it is what a job that rejects records writes; name it with --rejects-topic"
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
STAMPED_BY_BROKER = {"message.timestamp.type": "LogAppendTime"}
"""Of retry topics: times ascend, so that what is due lies before what is not."""


class RetryOptions(DefinitionOptions):
    """Options of the job that tries again."""

    delays: Annotated[tuple[Duration, ...], Field(min_length=1)] = ("1 minute", "10 minutes")
    """delay before each attempt; there are as many attempts as delays"""

    target_topic: TopicName | None = None
    """topic for records that no longer break a rule; TOPIC.retried if not given"""

    dead_topic: TopicName | None = None
    """topic of dead letters; TOPIC.dead if not given"""

    replay: bool = False
    """send all dead letters back to the topics they came from, then end"""

    client: dict[str, str] = Field(default={})
    """a setting of librdkafka for --replay, e.g. security.protocol=SSL; may be repeated"""

    def ways(self) -> Ways:
        """Return the topics between which records go."""
        waits = [_milliseconds(delay) for delay in self.delays]
        tiers = [(f"{self.topic}.retry.{n}", wait) for n, wait in enumerate(waits, start=1)]
        target = self.target_topic or f"{self.topic}.retried"
        return Ways(self.rejects(), tiers, target, self.dead())

    def dead(self) -> str:
        """Return the topic of dead letters."""
        return self.dead_topic or f"{self.topic}.dead"


def _milliseconds(delay: str) -> int:
    number, unit = delay.split(" ")
    return int(number) * SECONDS[unit.removesuffix("s")] * 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(RetryOptions, argv, NAME, __doc__)
    if options.replay:
        replayed = replay(options.bootstrap_servers, options.dead(), options.client)
        print(f"{NAME}: {replayed:,} dead letters of {options.dead()} replayed")
        return 0
    options.load_definition().section("retry", RetrySection)  # told before Spark starts
    with spark_session(options, NAME) as spark, stop_event() as stop:
        rows = retry(spark, options, stop)
    print(f"{NAME}: {rows:,} attempts and new rejects taken")
    return 0


def retry(
    spark: SparkSession,
    options: RetryOptions,
    stop: threading.Event,
    now_ms: Callable[[], int] | None = None,
) -> int:
    """Try what is due until stopped or, with `once`, until nothing more is; return rows read.

    `now_ms` is a clock for tests, which the broker's must agree with.
    """
    ways = options.ways()
    with open_topics(spark, options) as topics:
        topics.require(ways.rejects, HINT)
        directory = options.checkpoint / NAME
        identity = topics.identity(NAME, ways.rejects)
        claim_checkpoint(directory, identity)
        tiers = [topic for topic, _ in ways.tiers]
        topics.create_missing(tiers, options.partitions, STAMPED_BY_BROKER)
        topics.create_missing([ways.target, ways.dead], options.partitions, {})
    if options.metrics is not None:
        require_file("--metrics", options.metrics)
    rows = 0
    with open_offsets(spark, options) as offsets, Console(stderr=True).status("") as status:
        retrier = Retrier(spark, options, offsets, now_ms or _now_ms)
        rows += retrier.complete()
        while not stop.is_set():
            taken = retrier.step()
            rows += taken
            status.update(f"{rows:,} records   {retrier.words}")
            if not taken:
                if options.once:
                    break
                stop.wait(max(options.trigger_seconds, 0.1))
    return rows


def take(spark: SparkSession, records: DataFrame, options: RetryOptions) -> None:
    """Begin with a batch of rejects: have them wait for their first attempt, or be dead."""
    ways = options.ways()
    with open_topics(spark, options) as topics:
        topics.create_missing([ways.tiers[0][0]], options.partitions, STAMPED_BY_BROKER)
        topics.create_missing([ways.dead], options.partitions, {})
    rejected = records.withColumn("topic", F.lit(ways.rejects))
    definition = options.load_definition()
    rows = decided(spark, rejected, definition, ways, _now_ms())
    write_batch(rows.drop("source"), options)


class Retrier:
    """Plans and runs batches."""

    def __init__(
        self,
        spark: SparkSession,
        options: RetryOptions,
        offsets: Offsets,
        now_ms: Callable[[], int],
    ) -> None:
        self._spark, self._options, self._offsets = spark, options, offsets
        self._now_ms = now_ms
        self._definition = options.load_definition()
        self._ways = options.ways()
        self._journal = Journal(options.checkpoint / NAME)
        self.words = ""
        """How many records wait, by topic."""

    def complete(self) -> int:
        """Complete the batch that an earlier run left; return its rows."""
        batch = self._journal.last()
        if batch is None or self._journal.is_committed(batch):
            return 0
        self._write(batch, is_again=True)
        return batch.rows

    def step(self) -> int:
        """Take what is due; return its rows."""
        inputs = self._ways.inputs
        latest = ends_of(inputs, self._offsets.latest)
        due = self._due(latest)
        first = ends_of(inputs, self._offsets.earliest)
        outputs = ends_of(self._ways.outputs, self._offsets.latest)
        may_lose = self._options.on_data_loss == "record"
        last = self._journal.last()
        batch = next_batch(last, first, due, outputs, may_lose=may_lose)
        batch = limited(batch, self._options.max_offsets_per_trigger)
        self._note_waiting(latest, batch)
        if not batch.rows:
            return 0
        began = time.monotonic()
        for partition, end, begin in lost_between(last, batch):
            tell_lost(NAME, partition, end, begin)
        self._journal.plan(batch)
        self._write(batch, is_again=False)
        self._report(latest, batch, time.monotonic() - began)
        return batch.rows

    def _due(self, latest: Ends) -> Ends:
        """Return the ends of what may be tried: a record waits from when the broker stamped it."""
        now = self._now_ms()
        due = {self._ways.rejects: latest[self._ways.rejects]}
        for topic, wait_ms in self._ways.tiers:
            found = self._offsets.at_time(topic, now - wait_ms + 1)
            due[topic] = {n: min(found[n], end) for n, end in latest[topic].items()}
        return due

    def _write(self, batch: Batch, *, is_again: bool) -> None:
        topics = batch.topics()
        starting, ending = ({t: ends[t] for t in topics} for ends in (batch.starting, batch.ending))
        try:
            records = read_batch(self._spark, self._options, topics, starting, ending)
            now = self._now_ms()
            rows = decided(self._spark, records, self._definition, self._ways, now)
            if is_again:
                rows = rows.join(F.broadcast(self._written(batch)), "source", "left_anti")
            write_batch(rows.drop("source"), self._options)
        except (PySparkException, Py4JJavaError) as error:
            raise JobError(f"batch {batch.number} failed: {failure_reason(error)}") from error
        self._journal.commit(batch)

    def _written(self, batch: Batch) -> DataFrame:
        """Return the sources that an interrupted run has written already, each once."""
        topics = list(batch.outputs)
        ends = ends_of(topics, self._offsets.latest)
        begins = {t: {n: batch.outputs[t].get(n, 0) for n in ends[t]} for t in topics}
        return source_of(
            read_batch(self._spark, self._options, topics, begins, ends)
        ).dropDuplicates()

    def _note_waiting(self, latest: Ends, batch: Batch) -> None:
        waiting = {
            topic: sum(latest[topic].values()) - sum(ends.values())
            for topic, ends in batch.ending.items()
        }
        self.words = "   ".join(f"{topic}: {n:,} wait" for topic, n in waiting.items() if n)

    def _report(self, latest: Ends, batch: Batch, seconds: float) -> None:
        if self._options.metrics is None:
            return
        rate = round(batch.rows / seconds, 1) if seconds else 0.0
        lag = {
            f"{topic}-{number}": latest[topic][number] - end
            for topic, ends in batch.ending.items()
            for number, end in ends.items()
        }
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._now_ms() / 1000))
        report = BatchReport(
            query=NAME,
            batch=batch.number,
            at=at,
            rows=batch.rows,
            input_rows_per_second=rate,
            processed_rows_per_second=rate,
            duration_ms=round(seconds * 1000),
            lag=lag,
            watermark=None,
            state_rows=0,
            dropped_by_watermark=0,
        )
        path = self._options.metrics
        with writing("--metrics", path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(report.line()) + "\n")


def _now_ms() -> int:
    return int(time.time() * 1000)  # noqa: TID251 - what delays are measured by


if __name__ == "__main__":
    sys.exit(main())
