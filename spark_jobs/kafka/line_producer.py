"""Producing a stream of numbered lines to a topic, so that running it again completes it.

Each record carries the header `line`: the stream's name and the line's number. The last record of
each partition says how far the stream came, and only lines beyond are sent. This rests on two
things: a line's partition depends on its key alone, so that a topic which was grown by partitions
is refused, and an idempotent producer appends to a partition in order and without gaps.
"""

from __future__ import annotations

import logging
import sys
import time
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pydantic import Field, PositiveInt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spark_jobs.errors import JobError
from spark_jobs.kafka.client_failures import client_failure
from spark_jobs.kafka.feed_position import LINE_HEADER, PARTITIONS_HEADER, last_lines, line_header
from spark_jobs.kafka.reachable import check_reachable
from spark_jobs.options import KafkaOptions, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from spark_jobs.flights.flight_feed import Line

TIMEOUT_SECONDS = 15.0
FLUSH_SECONDS = 60.0
POLL_EVERY = 1000
FULL_QUEUE_SECONDS = 0.2
TICK_SECONDS = 0.01

CLIENT_SETTINGS: dict[str, Any] = {
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "compression.type": "lz4",
    "linger.ms": 20,
    "queue.buffering.max.messages": 50_000,
    "queue.buffering.max.kbytes": 65_536,
}

TOPIC_SETTINGS = {
    # The records' times are long ago: under the default week they would be deleted at once.
    "retention.ms": "-1",
    # By record time a year would make 53 segments a partition.
    "segment.ms": str(400 * 24 * 3600 * 1000),
}


class ProducerOptions(KafkaOptions):
    """Options of a job that produces."""

    topic: TopicName
    """topic to produce to; created when it is not there"""

    partitions: PositiveInt = 4
    """partitions of the topic, if it has to be created"""

    client: dict[str, str] = Field(default={})
    """a setting of librdkafka, e.g. security.protocol=SSL; may be repeated"""

    def client_settings(self) -> dict[str, Any]:
        """Return the settings that every client of the job starts from."""
        quiet = {"log_level": 0, "logger": logging.getLogger("librdkafka")}
        return {**quiet, **self.client, "bootstrap.servers": self.bootstrap_servers}


@dataclass(frozen=True, slots=True)
class Numbered:
    """A stream of lines to produce."""

    name: str
    """Tells streams apart: records of one name and line number are the same record."""

    lines: Iterable[Line]
    total: int
    """How many there are."""

    rate: float | None = None
    """Lines a second, kept steady; as fast as can be when None."""


@dataclass(slots=True)
class Outcome:
    """What producing came to."""

    lines: int = 0
    """Of the stream."""

    reasons: Counter[str] = field(default_factory=Counter)
    """Damaged lines of the stream, by the reason they must be rejected for."""

    sent: int = 0
    acknowledged: int = 0
    first_error: str = ""

    @property
    def damaged(self) -> int:
        """Damaged lines of the stream."""
        return self.reasons.total()

    @property
    def already_there(self) -> int:
        """Lines that an earlier run produced."""
        return self.lines - self.sent

    def note_delivery(self, error: KafkaError | None, _message: Message) -> None:
        """Count a delivery; called once per record, from the producer's poll or flush."""
        if error is None:
            self.acknowledged += 1
        elif not self.first_error:
            self.first_error = str(error.str())

    def words(self) -> str:
        """Return a line for people."""
        return (
            f"{self.lines:,} lines, {self.damaged:,} of them damaged; "
            f"{self.sent:,} sent and acknowledged, {self.already_there:,} were there before"
        )


def produce_stream(options: ProducerOptions, stream: Numbered) -> Outcome:
    """Bring the topic to hold the whole stream; raise `JobError` if a record is not delivered."""
    check_reachable(options.bootstrap_servers)
    settings = options.client_settings()
    try:
        partitions = _prepare_topic(options, settings)
        reached = last_lines(options.topic, partitions, stream, settings)
        outcome = _Sender(options, stream, reached).send_all()
    except KafkaException as error:
        raise client_failure(options.bootstrap_servers, error) from error
    if outcome.acknowledged != outcome.sent:
        raise JobError(
            f"{outcome.sent - outcome.acknowledged:,} of {outcome.sent:,} records were not "
            f"delivered ({outcome.first_error or 'no answer'}); run again to complete the topic"
        )
    return outcome


def partition_of(key: bytes, partitions: int) -> int:
    """Return a key's partition; the same as librdkafka's partitioner `consistent`."""
    return zlib.crc32(key) % partitions


def _prepare_topic(options: ProducerOptions, settings: dict[str, Any]) -> int:
    admin = AdminClient(settings)
    topics = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    if options.topic in topics:
        found = len(topics[options.topic].partitions)
        if "partitions" in options.model_fields_set and options.partitions != found:
            print(
                f"topic '{options.topic}' is there and keeps its {found} partitions: "
                f"--partitions {options.partitions} is for one that has to be created",
                file=sys.stderr,
            )
        return found
    topic = NewTopic(options.topic, num_partitions=options.partitions, config=TOPIC_SETTINGS)
    admin.create_topics([topic], operation_timeout=TIMEOUT_SECONDS)[options.topic].result()
    return options.partitions


class _RefusedError(Exception):
    """The producer takes no more, for the reason of the first failed delivery."""


class _Sender:
    """Sends lines that the topic does not hold yet, and counts what becomes of them."""

    def __init__(self, options: ProducerOptions, stream: Numbered, reached: Sequence[int]) -> None:
        self.outcome = Outcome()
        self._producer = Producer(CLIENT_SETTINGS | options.client_settings())
        self._topic = options.topic
        self._stream = stream
        self._reached = reached
        self._partitions = str(len(reached)).encode()
        self._begin = time.monotonic()

    def send_all(self) -> Outcome:
        """Send the lines and wait for the last acknowledgement; stop early at an error."""
        with _progress() as progress:
            task = progress.add_task(self._topic, total=self._stream.total)
            with suppress(_RefusedError):
                for line in self._stream.lines:
                    self._take(line)
                    if line.number % POLL_EVERY == 0:
                        self._serve(self._producer.poll, 0)
                        progress.update(task, completed=line.number)
                        if self.outcome.first_error:
                            break
            self._serve(self._producer.flush, FLUSH_SECONDS)
            progress.update(task, completed=self.outcome.lines)
        return self.outcome

    def _serve(self, call: Callable[[float], object], seconds: float) -> None:
        """Let the client call back.

        It raises a fatal error out of that; in the midst of a callback, as the cause of a
        SystemError, since it goes on calling back first.
        """
        try:
            call(seconds)
        except (KafkaException, SystemError) as error:
            cause = error if isinstance(error, KafkaException) else error.__cause__
            if not isinstance(cause, KafkaException):
                raise
            if not self.outcome.first_error:
                self.outcome.first_error = str(cause.args[0].str())

    def _take(self, line: Line) -> None:
        outcome = self.outcome
        outcome.lines += 1
        if line.damage is not None:
            outcome.reasons[line.damage.reason] += 1
        partition = partition_of(line.key, len(self._reached))
        if line.number <= self._reached[partition]:
            return
        if self._stream.rate is not None:
            self._wait(self._stream.rate)
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=line.value,
                    key=line.key,
                    partition=partition,
                    on_delivery=outcome.note_delivery,
                    timestamp=line.timestamp_ms,
                    headers=[
                        (LINE_HEADER, line_header(self._stream, line.number)),
                        (PARTITIONS_HEADER, self._partitions),
                    ],
                )
            except KafkaException as error:  # a delivery failed, and the ones behind it must too
                self._serve(self._producer.poll, 0)
                if not self.outcome.first_error:
                    raise
                raise _RefusedError from error
            except BufferError:  # the queue is full: let the broker catch up
                self._serve(self._producer.poll, FULL_QUEUE_SECONDS)
            else:
                outcome.sent += 1
                return

    def _wait(self, rate: float) -> None:
        """Sleep a tick when more was sent than is due; who fell behind sends until it caught up."""
        sent = self.outcome.sent
        if sent == 0:
            self._begin = time.monotonic()  # what was there before took no time
        while sent > (time.monotonic() - self._begin) * rate:
            self._serve(self._producer.poll, TICK_SECONDS)


def _progress() -> Progress:
    return Progress(
        TextColumn("produce to {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
