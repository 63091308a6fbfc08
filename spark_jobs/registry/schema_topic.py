"""The topic `_schemas`: replayed into the state by one thread, written by one registry at a time.

Several registries may run on one topic, and each takes reads and writes. No leader is elected:
whoever writes does it as the transactional producer of one id, `schema-registry`, which Kafka
itself gives to one process at a time.

1. `init_transactions` fences the registry that wrote last, and ends what it left open.
2. Read to the end of the topic; nobody can write now without fencing this registry in turn.
3. Decide on the state, and write the records as a transaction.
4. Fenced meanwhile: nothing was written; begin again. Not fenced: 2 and 3 suffice for the next.

So an answer given is in the log, and no decision is made on a state that another has changed.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from spark_jobs.registry.registry_errors import STORE_ERROR, STORE_TIMED_OUT, RegistryError
from spark_jobs.registry.subjects import Subjects

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.registry.registration import Decision
    from spark_jobs.registry.schema_records import LogRecord

TRANSACTIONAL_ID = "schema-registry"
POLL_SECONDS = 0.2
ATTEMPTS = 5
"""How often a request may lose the race for the topic before it is refused."""

FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH})  # noqa: SLF001

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Where the topic is, and how long a request may wait for it."""

    topic: str
    client: dict[str, str | int | float | bool]
    """Settings of librdkafka, `bootstrap.servers` among them."""

    request_seconds: float = 15.0


class SchemaTopic:
    """The state of the registry, and the one way to change it."""

    def __init__(self, settings: TopicSettings) -> None:
        self._settings = settings
        self._state = Subjects()
        self._replayed = 0
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._closed = threading.Event()
        self._producer: Producer | None = None
        self._consumer = Consumer(
            {
                "auto.offset.reset": "error",
                **settings.client,
                "group.id": TRANSACTIONAL_ID,
                "enable.auto.commit": "false",
                "enable.partition.eof": "true",
                "isolation.level": "read_committed",
            }
        )
        self._admin = AdminClient(settings.client)
        self._partition = TopicPartition(settings.topic, 0)
        self._consumer.assign([TopicPartition(settings.topic, 0, OFFSET_BEGINNING)])
        self._reader = threading.Thread(target=self._follow, name="schema-topic", daemon=True)
        self.failure: KafkaError | None = None
        """What ended the reading thread: then nothing can be answered any more."""

        self.on_failure: Callable[[], None] = lambda: None

    def open(self, timeout_seconds: float) -> None:
        """Replay the topic from its beginning to where it ends now."""
        self._reader.start()
        self._catch_up(time.monotonic() + timeout_seconds)

    def close(self) -> None:
        """End the reading thread and the connections."""
        self._closed.set()
        self._reader.join()
        self._consumer.close()

    def read(self, look: Callable[[Subjects], AnswerT]) -> AnswerT:
        """Return what `look` finds in the state.

        What it misses may have been written by another registry a moment ago: before a refusal
        the state catches up with the topic, and `look` is called again.
        """
        try:
            with self._changed:
                return look(self._state)
        except RegistryError:
            self._catch_up(time.monotonic() + self._settings.request_seconds)
            with self._changed:
                return look(self._state)

    def change(self, decide: Callable[[Subjects], Decision[AnswerT]]) -> AnswerT:
        """Write what `decide` decides on the state, and return its answer once it is replayed.

        `decide` may be called several times, and raise `RegistryError` to refuse.
        """
        deadline = time.monotonic() + self._settings.request_seconds
        with self._writing:
            for _ in range(ATTEMPTS):
                try:
                    return self._changed_by(decide, deadline)
                except KafkaException as error:
                    self._producer = None
                    if error.args[0].code() not in FENCED:
                        raise _store_error(error) from error
        raise RegistryError(STORE_TIMED_OUT, "other registries write to the topic all the time")

    def _changed_by(
        self, decide: Callable[[Subjects], Decision[AnswerT]], deadline: float
    ) -> AnswerT:
        if self._producer is None:
            producer = Producer(
                {**self._settings.client, "transactional.id": TRANSACTIONAL_ID, "linger.ms": "0"}
            )
            producer.init_transactions(_left(deadline))
            self._producer = producer
        self._catch_up(deadline)
        with self._changed:
            decision = decide(self._state)
        if decision.records:
            self._write(self._producer, decision.records, deadline)
            self._catch_up(deadline)
        return decision.answer

    def _write(self, producer: Producer, records: tuple[LogRecord, ...], deadline: float) -> None:
        producer.begin_transaction()
        for record in records:
            producer.produce(self._settings.topic, record.value, record.key, 0)
        while True:
            try:
                producer.commit_transaction(_left(deadline))
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            else:
                return

    def _catch_up(self, deadline: float) -> None:
        """Wait until the state has all that is in the topic now."""
        try:
            end = self._end(_left(deadline))
        except KafkaException as error:
            raise _store_error(error) from error
        with self._changed:
            if not self._changed.wait_for(lambda: self._replayed >= end, _left(deadline)):
                raise RegistryError(STORE_TIMED_OUT, "the topic of schemas is not read in time")

    def _end(self, timeout_seconds: float) -> int:
        """Ask where the topic ends, not on the connection where a fetch waits for more."""
        asked = self._admin.list_offsets(
            {self._partition: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=timeout_seconds,
        )
        return int(asked[self._partition].result().offset)

    def _follow(self) -> None:
        """Replay the topic for ever: what a thread of its own does."""
        while not self._closed.is_set():
            message = self._consumer.poll(POLL_SECONDS)
            if message is None:
                continue
            error, offset = message.error(), message.offset() or 0
            with self._changed:
                if error is None:
                    self._state.replay(message.key(), message.value())
                    self._replayed = offset + 1
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                    self._replayed = offset
                elif not error.retriable() and error.code() not in AWAY:
                    self.failure = error
                    self.on_failure()
                    return
                self._changed.notify_all()


AWAY = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})  # noqa: SLF001
"""Errors that pass when the broker is back."""


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def _store_error(error: KafkaException) -> RegistryError:
    reason = error.args[0]
    code = STORE_TIMED_OUT if reason.code() in AWAY else STORE_ERROR
    return RegistryError(code, f"The topic of schemas cannot be used: {reason.str()}")
