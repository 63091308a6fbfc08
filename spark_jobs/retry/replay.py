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

import logging
from typing import TYPE_CHECKING, Any

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
from spark_jobs.retry.dead_letter import NoDeadLetterError, offset_of, replayed_of, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from confluent_kafka import Message

TIMEOUT_SECONDS = 30.0
TRANSACTION_LETTERS = 500


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
                    self._seen.add(source_of(letter))
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
            source = source_of(letter)
            if source not in self._seen:
                self._put_back(letter, source)
                self._seen.add(source)
                replayed += 1
            if taken == TRANSACTION_LETTERS:
                self._commit(partition, offset_of(letter) + 1)
                taken = 0
        if taken:
            self._commit(partition, end)
        return replayed

    def _put_back(self, letter: Message, source: bytes) -> None:
        place = f"{self._topic}/{letter.partition()}/{offset_of(letter)}"
        try:
            record = replayed_of(letter, source)
        except NoDeadLetterError as error:
            self._producer.abort_transaction(TIMEOUT_SECONDS)
            raise JobError(f"{place} cannot be replayed: {error}") from error
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
            if offset_of(message) >= end:
                return
            yield message
            if offset_of(message) + 1 == end:
                return
