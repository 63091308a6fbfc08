"""Putting dead letters back to the topics they came from, each once.

Letters are read, and their records produced, in transactions which also move the position of a
consumer group, so that neither is ever there without the other: a replay that was killed goes on
where it was, when it is run again. A letter that is there twice has the same header `source` both
times, and is replayed once.

A replayed record has its value, its key and its partition; and the headers `origin`, where it was
at first, and `replayed`, the place of its dead letter.

Letters of the broker's retry topics (docs/messaging.md) are known by their header
`dead-letter-source`, and go back to the partition of the retry topic that it names: with the
headers that were their own, `replayed`, and without those that count attempts. They begin anew.
"""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from spark_jobs.errors import JobError
from spark_jobs.kafka.client_failures import client_failure
from spark_jobs.kafka.feed_position import REPLAYED_HEADER
from spark_jobs.kafka.reachable import check_reachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from confluent_kafka import Message

TIMEOUT_SECONDS = 30.0
TRANSACTION_LETTERS = 500
SOURCE_HEADER = "source"
DEAD_SOURCE_HEADER = "dead-letter-source"
COUNTING_HEADERS = {
    "retry-attempt",
    "dead-letter-attempts",
    DEAD_SOURCE_HEADER,
    "dead-letter-time",
    REPLAYED_HEADER,
}
"""Those that a record has on account of the attempts it had before."""


def replay(servers: str, topic: str, client: Mapping[str, str]) -> int:
    """Replay the dead letters that are in `topic` now; return how many.

    Raises `JobError` when one cannot be put back, having said which; those before it are.
    """
    check_reachable(servers)
    settings: dict[str, Any] = {
        "log_level": 0,
        "logger": logging.getLogger("librdkafka"),
        **client,
        "bootstrap.servers": servers,
    }
    try:
        return _Replay(topic, settings).run()
    except KafkaException as error:
        raise client_failure(servers, error, "; run again to go on") from error


class _Replayed(NamedTuple):
    """What is put back, and where."""

    topic: str
    partition: int
    value: bytes | None
    headers: list[Any]


class _Replay:
    """One run over the dead letters."""

    def __init__(self, topic: str, settings: dict[str, Any]) -> None:
        self._topic = topic
        self._producer = Producer({**settings, "transactional.id": f"spark_jobs-replay-{topic}"})
        self._consumer = Consumer(
            {
                **settings,
                "group.id": f"spark_jobs-replay-{topic}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        self._seen: set[bytes] = set()
        """Sources of letters that are replayed; some 100 bytes each."""

    def run(self) -> int:
        """Replay what is there."""
        self._producer.init_transactions(TIMEOUT_SECONDS)
        try:
            found = self._consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
            if self._topic not in found:
                raise JobError(f"there is no topic '{self._topic}'")
            places = [TopicPartition(self._topic, n) for n in found[self._topic].partitions]
            reached = {p.partition: p.offset for p in self._consumer.committed(places)}
            ends = {p.partition: self._end(p) for p in places}
            for number, offset in reached.items():  # what earlier runs have done
                for letter in self._letters(number, 0, offset):
                    self._seen.add(_source(letter))
            return sum(
                self._replay(number, max(reached[number], 0), end) for number, end in ends.items()
            )
        finally:
            self._consumer.close()

    def _end(self, place: TopicPartition) -> int:
        _, high = self._consumer.get_watermark_offsets(place, timeout=TIMEOUT_SECONDS)
        return int(high)

    def _replay(self, partition: int, begin: int, end: int) -> int:
        """Replay a partition's letters from an offset to before another."""
        replayed = taken = 0
        for letter in self._letters(partition, begin, end):
            if not taken:
                self._producer.begin_transaction()
            taken += 1
            source = _source(letter)
            if source not in self._seen:
                self._put_back(letter, source)
                self._seen.add(source)
                replayed += 1
            if taken == TRANSACTION_LETTERS:
                self._commit(partition, _offset(letter) + 1)
                taken = 0
        if taken:
            self._commit(partition, end)
        return replayed

    def _put_back(self, letter: Message, source: bytes) -> None:
        place = f"{self._topic}/{letter.partition()}/{_offset(letter)}"
        try:
            record = _of_retry_topic(letter) or _of_job(letter, source)
        except (ValueError, KeyError, TypeError) as error:
            self._producer.abort_transaction(TIMEOUT_SECONDS)
            raise JobError(f"{place} is no dead letter ({error}): it cannot be replayed") from error
        self._producer.produce(
            record.topic,
            key=letter.key(),
            value=record.value,
            partition=record.partition,
            headers=[*record.headers, (REPLAYED_HEADER, place)],
        )
        self._producer.poll(0)

    def _commit(self, partition: int, offset: int) -> None:
        position = [TopicPartition(self._topic, partition, offset)]
        group = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(position, group, TIMEOUT_SECONDS)
        self._producer.commit_transaction(TIMEOUT_SECONDS)

    def _letters(self, partition: int, begin: int, end: int) -> Iterator[Message]:
        if begin >= end:
            return
        self._consumer.assign([TopicPartition(self._topic, partition, begin or OFFSET_BEGINNING)])
        while True:
            message = self._consumer.poll(TIMEOUT_SECONDS)
            if message is None:
                raise JobError(f"{self._topic}-{partition} cannot be read; run again to go on")
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                    raise KafkaException(error)
                return
            if _offset(message) >= end:
                return
            yield message
            if _offset(message) + 1 == end:
                return


def _of_retry_topic(letter: Message) -> _Replayed | None:
    """Return what a letter of the broker was; None for others, ValueError for a place of none."""
    headers: list[Any] = list(letter.headers() or [])
    places = [value for name, value in headers if name == DEAD_SOURCE_HEADER]
    if not places:
        return None
    topic, partition, _ = places[-1].decode().rsplit("/", 2)
    own = [header for header in headers if header[0] not in COUNTING_HEADERS]
    return _Replayed(topic, int(partition), letter.value(), own)


def _of_job(letter: Message, source: bytes) -> _Replayed:
    """Return the record that a letter of the job `retry` holds, which is JSON."""
    found = json.loads(letter.value() or b"")
    origin = found["source"]
    return _Replayed(origin["topic"], origin["partition"], _value(found), [("origin", source)])


def _value(letter: Mapping[str, Any]) -> bytes | None:
    """Return the value that the record had; raise ValueError when the letter lacks a part."""
    size = letter["raw_bytes"]
    if size is None:
        return None
    if letter["raw_base64"] is not None:
        value = base64.b64decode(letter["raw_base64"])
    else:
        value = letter["raw"].encode()
    if len(value) != size:
        raise ValueError(f"{size:,} bytes long, of which it has {len(value):,}")
    return value


def _source(letter: Message) -> bytes:
    headers: dict[str, Any] = dict(letter.headers() or [])
    named = headers.get(DEAD_SOURCE_HEADER) or headers.get(SOURCE_HEADER)
    return bytes(named or f"{letter.partition()}/{_offset(letter)}".encode())


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset
