"""Job: produce the flights of 2013 to a topic, with damaged lines between them.

Every line is one record: key, JSON value, event time as the record's timestamp, and the header
`line` with the feed's name and the line's number. Delivery of each is checked.

Running it again adds nothing: the last record of each partition says how far the feed came, and
only lines beyond are sent. So an interrupted run is completed by the next, without doubles. This
rests on two things: a line's partition depends on its key alone, and an idempotent producer
appends to a partition in order and without gaps.
"""

from __future__ import annotations

import logging
import sys
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

if not __package__:  # given as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import spark_jobs.extra  # noqa: F401 - first of all: it says what is not installed

# isort: split
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pydantic import Field, PositiveInt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spark_jobs.errors import JobError, exit_code_of
from spark_jobs.feed import Feed, Line
from spark_jobs.feed_position import LINE_HEADER, last_lines, line_header
from spark_jobs.options import KafkaOptions, TopicName, parse_options
from spark_jobs.reachable import check_reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "produce_flights"
TIMEOUT_SECONDS = 15.0
FLUSH_SECONDS = 60.0
POLL_EVERY = 1000
FULL_QUEUE_SECONDS = 0.2

CLIENT_SETTINGS: dict[str, Any] = {
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "compression.type": "lz4",
    "linger.ms": 20,
    "queue.buffering.max.messages": 50_000,
    "queue.buffering.max.kbytes": 65_536,
}

TOPIC_SETTINGS = {
    # The records are of 2013: under the default week they would be deleted at once.
    "retention.ms": "-1",
    # By record time a year would make 53 segments a partition.
    "segment.ms": str(400 * 24 * 3600 * 1000),
}


class ProduceOptions(KafkaOptions):
    """Options of the producing job."""

    topic: TopicName = "flights"
    """topic to produce to; created when it is not there"""

    partitions: PositiveInt = 4
    """partitions of the topic, if it has to be created"""

    months: tuple[Annotated[int, Field(ge=1, le=12)], ...] = ()
    """only flights of these months"""

    damaged: Annotated[int, Field(ge=0, le=20_000)] = 300
    """damaged lines to put between the flights"""

    client: dict[str, str] = Field(default={})
    """a setting of librdkafka, e.g. security.protocol=SSL; may be repeated"""

    def feed(self) -> Feed:
        """Return the feed that these options choose."""
        return Feed(damaged=self.damaged, months=self.months)

    def client_settings(self) -> dict[str, Any]:
        """Return the settings that every client of the job starts from."""
        quiet = {"log_level": 0, "logger": logging.getLogger("librdkafka")}
        return {**quiet, **self.client, "bootstrap.servers": self.bootstrap_servers}


@dataclass(slots=True)
class Outcome:
    """What producing came to."""

    lines: int = 0
    """Of the feed."""

    reasons: Counter[str] = field(default_factory=Counter)
    """Damaged lines of the feed, by the reason they must be rejected for."""

    sent: int = 0
    acknowledged: int = 0
    first_error: str = ""

    @property
    def damaged(self) -> int:
        """Damaged lines of the feed."""
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    description = (__doc__ or "").partition("\n")[0]
    options = parse_options(ProduceOptions, argv, NAME, description)
    outcome = produce(options)
    print(
        f"{NAME}: {outcome.lines:,} lines, {outcome.damaged:,} of them damaged; "
        f"{outcome.sent:,} sent and acknowledged, {outcome.already_there:,} were there before"
    )
    return 0


def produce(options: ProduceOptions) -> Outcome:
    """Bring the topic to hold the whole feed; raise `JobError` if any record is not delivered."""
    check_reachable(options.bootstrap_servers)
    settings = options.client_settings()
    feed = options.feed()
    try:
        partitions = _prepare_topic(options, settings)
        reached = last_lines(options.topic, partitions, feed, settings)
        outcome = _Sender(options, reached).send_all()
    except KafkaException as error:
        raise JobError(f"{options.bootstrap_servers}: {_words(error.args[0])}") from error
    if outcome.acknowledged != outcome.sent:
        raise JobError(
            f"{outcome.sent - outcome.acknowledged:,} of {outcome.sent:,} records were not "
            f"delivered ({outcome.first_error or 'no answer'}); run again to complete the topic"
        )
    return outcome


def _words(error: KafkaError) -> str:
    if error.code() in {KafkaError._TRANSPORT, KafkaError._TIMED_OUT}:  # noqa: SLF001 - their names
        return f"something listens there but does not answer as a Kafka broker ({error.str()})"
    return str(error.str())


def partition_of(key: bytes, partitions: int) -> int:
    """Return a key's partition; the same as librdkafka's partitioner `consistent`."""
    return zlib.crc32(key) % partitions


def _prepare_topic(options: ProduceOptions, settings: dict[str, Any]) -> int:
    admin = AdminClient(settings)
    topics = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    if options.topic in topics:
        return len(topics[options.topic].partitions)
    topic = NewTopic(options.topic, num_partitions=options.partitions, config=TOPIC_SETTINGS)
    admin.create_topics([topic], operation_timeout=TIMEOUT_SECONDS)[options.topic].result()
    return options.partitions


class _RefusedError(Exception):
    """The producer takes no more, for the reason of the first failed delivery."""


class _Sender:
    """Sends lines that the topic does not hold yet, and counts what becomes of them."""

    def __init__(self, options: ProduceOptions, reached: Sequence[int]) -> None:
        self._producer = Producer(CLIENT_SETTINGS | options.client_settings())
        self._topic = options.topic
        self._feed = options.feed()
        self._reached = reached
        self.outcome = Outcome()

    def send_all(self) -> Outcome:
        """Send the feed and wait for the last acknowledgement; stop early at an error."""
        flights = self._feed.flights()
        with _progress() as progress:
            task = progress.add_task(self._topic, total=len(flights) + self._feed.damaged)
            with suppress(_RefusedError):
                for line in self._feed.lines(flights):
                    self._take(line)
                    if line.number % POLL_EVERY == 0:
                        self._producer.poll(0)
                        progress.update(task, completed=line.number)
                        if self.outcome.first_error:
                            break
            self._producer.flush(FLUSH_SECONDS)
            progress.update(task, completed=self.outcome.lines)
        return self.outcome

    def _take(self, line: Line) -> None:
        outcome = self.outcome
        outcome.lines += 1
        if line.damage is not None:
            outcome.reasons[line.damage.reason] += 1
        partition = partition_of(line.key, len(self._reached))
        if line.number <= self._reached[partition]:
            return
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=line.value,
                    key=line.key,
                    partition=partition,
                    on_delivery=outcome.note_delivery,
                    timestamp=line.timestamp_ms,
                    headers=[(LINE_HEADER, line_header(self._feed, line.number))],
                )
            except KafkaException as error:  # a delivery failed, and the ones behind it must too
                self._producer.poll(0)
                if not self.outcome.first_error:
                    raise
                raise _RefusedError from error
            except BufferError:  # the queue is full: let the broker catch up
                self._producer.poll(FULL_QUEUE_SECONDS)
            else:
                outcome.sent += 1
                return


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


if __name__ == "__main__":
    sys.exit(main())
