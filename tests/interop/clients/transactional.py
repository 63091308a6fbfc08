"""Transactional producers of the Python clients, driven through the same verbs.

A producer is initialised when it is made, which aborts what its predecessor left open. All calls
wait; aiokafka gets a loop per object.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Protocol

TIMEOUT_SECONDS = 120.0
LONGEST_TRANSACTION_MS = 900_000
"""The brokers' maximum, so that a busy machine aborts no transaction unless a test is about
that."""


class TransactionalProducer(Protocol):
    """An incarnation of a transactional id; made as `Class(bootstrap, id, timeout_ms)`."""

    def begin(self) -> None:
        """Open a transaction."""

    def send(self, topic: str, partition: int, value: bytes, key: bytes | None = None) -> None:
        """Hand one record to the client."""

    def flush(self) -> None:
        """Wait until the broker has what was sent."""

    def send_offsets(self, topic: str, offsets: dict[int, int], reader: Any) -> None:
        """Put the group's next offsets, by partition, into the transaction."""

    def commit(self) -> None:
        """Commit; raises what the client raises."""

    def abort(self) -> None:
        """Abort; raises what the client raises."""

    def close(self) -> None:
        """Close sockets and threads, in any state."""

    @staticmethod
    def is_fenced(error: Exception) -> bool:
        """Return whether `error` means that this incarnation was fenced."""


class ConfluentProducer:
    """librdkafka."""

    patience_seconds = TIMEOUT_SECONDS
    """Timeout of a call."""

    def __init__(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = LONGEST_TRANSACTION_MS
    ) -> None:
        from confluent_kafka import Producer

        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": min(timeout_ms, 60_000),
                "linger.ms": 2,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(TIMEOUT_SECONDS)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes, key: bytes | None = None) -> None:
        self._producer.produce(topic, value=value, key=key, partition=partition)
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(self.patience_seconds) == 0

    def send_offsets(self, topic: str, offsets: dict[int, int], reader: Any) -> None:
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        group = reader.native.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(asked, group, self.patience_seconds)

    def commit(self) -> None:
        self._producer.commit_transaction(self.patience_seconds)

    def abort(self) -> None:
        self._producer.abort_transaction(self.patience_seconds)

    def close(self) -> None:
        from confluent_kafka import KafkaException

        self._producer.purge()
        with contextlib.suppress(KafkaException):  # the error that ended it, told once more
            self._producer.flush(0)

    @staticmethod
    def is_fenced(error: Exception) -> bool:
        from confluent_kafka import KafkaError, KafkaException

        return isinstance(error, KafkaException) and error.args[0].code() == KafkaError._FENCED


class KafkaPythonProducer:
    """kafka-python."""

    def __init__(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = LONGEST_TRANSACTION_MS
    ) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=2,
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes, key: bytes | None = None) -> None:
        self._producer.send(topic, value=value, key=key, partition=partition)

    def flush(self) -> None:
        self._producer.flush(TIMEOUT_SECONDS)

    def send_offsets(self, topic: str, offsets: dict[int, int], reader: Any) -> None:
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        asked = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        self._producer.send_offsets_to_transaction(asked, reader.native.group_metadata())

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)

    @staticmethod
    def is_fenced(error: Exception) -> bool:
        from kafka.errors import ProducerFencedError

        return isinstance(error, ProducerFencedError) or isinstance(
            error.__cause__, ProducerFencedError
        )


class AioProducer:
    """aiokafka."""

    def __init__(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = LONGEST_TRANSACTION_MS
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._sent: list[Any] = []
        self._wait(self._start(bootstrap, transactional_id, timeout_ms))

    def begin(self) -> None:
        self._wait(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: bytes, key: bytes | None = None) -> None:
        sending = self._producer.send(topic, value=value, key=key, partition=partition)
        self._sent.append(self._wait(sending))

    def flush(self) -> None:
        self._wait(self._producer.flush())

    def send_offsets(self, topic: str, offsets: dict[int, int], reader: Any) -> None:
        from aiokafka import TopicPartition

        asked = {TopicPartition(topic, partition): offset for partition, offset in offsets.items()}
        self._wait(self._producer.send_offsets_to_transaction(asked, reader.group))

    def commit(self) -> None:
        self._wait(self._producer.commit_transaction())

    def abort(self) -> None:
        self._wait(self._producer.abort_transaction())

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._wait(self._producer.stop())
        for future in self._sent:
            if future.done() and not future.cancelled():
                future.exception()  # read, so that the loop does not complain of it
        self._loop.close()

    @staticmethod
    def is_fenced(error: Exception) -> bool:
        from aiokafka.errors import ProducerFenced

        return isinstance(error, ProducerFenced)

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from aiokafka import AIOKafkaProducer

        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=2,
        )
        await self._producer.start()

    def _wait(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(coroutine, TIMEOUT_SECONDS))


PRODUCERS: dict[str, type[Any]] = {
    "confluent-kafka": ConfluentProducer,
    "kafka-python": KafkaPythonProducer,
    "aiokafka": AioProducer,
}
