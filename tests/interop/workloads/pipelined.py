"""A raw producer with five requests under way, which connects as soon as a broker listens.

It asks for no metadata first: what it pipelines may arrive before the broker knows what it leads.
Idempotent, it repeats what is not acknowledged, in order; plain, it sends each batch once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from protocol.headers import response_header_bytes
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from protocol.records.builder import NewRecord, build_batch
from tests.interop.clients.record import BASE_TIMESTAMP_MS
from tests.support import wire

if TYPE_CHECKING:
    from protocol.schema import Request

UNDER_WAY = 5
PRODUCE_VERSION = 8
INIT_VERSION = 1
ANSWER_SECONDS = 20.0
FINISH_SECONDS = 120.0
RECONNECT_SECONDS = 0.002
APART_SECONDS = 0.001
"""Between the first request on a connection and the others: they are not read together."""

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
MAY_PASS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


@dataclass(frozen=True, slots=True)
class Manner:
    """Settings of a producer and its batches."""

    is_idempotent: bool
    acks: int
    sizes: tuple[int, int]
    """Least and greatest length of a value."""
    most_records: int = 3
    """Bound on the records of a batch."""


@dataclass(slots=True)
class _Batch:
    sequence: int
    values: list[bytes]
    is_acknowledged: bool = False


class PipelinedLoad(threading.Thread):
    """Sends to one partition from `start` to `finish`."""

    def __init__(self, name: str, port: int, topic: str, partition: int, manner: Manner) -> None:
        super().__init__(name=name, daemon=True)
        self.partition = partition
        self.manner = manner
        self.sent: list[bytes] = []
        """All values, in the order in which they were first sent."""
        self.acknowledged: list[tuple[int, bytes]] = []
        """Offsets and values."""
        self.failures: list[str] = []
        self._port = port
        self._topic = topic
        self._random = Random(name)
        self._stop_asked = threading.Event()
        self._window: deque[_Batch] = deque()
        self._producer_id = -1
        self._correlation_id = 0

    def finish(self) -> None:
        """Send no more, and wait until everything is answered."""
        self._stop_asked.set()
        self.join(FINISH_SECONDS)
        if self.is_alive():
            self.failures.append("records are still not answered")

    def run(self) -> None:
        """Connect again and again."""
        while not (self._stop_asked.is_set() and not self._window):
            try:
                with wire.RawConnection.open(self._port, ANSWER_SECONDS) as connection:
                    self._converse(connection)
            except OSError:
                time.sleep(RECONNECT_SECONDS)
            if not self.manner.is_idempotent:
                self._window.clear()

    def _converse(self, connection: wire.RawConnection) -> None:
        """Produce until an answer is an error, or nothing is left to send."""
        if self.manner.is_idempotent and self._producer_id < 0:
            self._obtain_id(connection)
        again = deque(batch for batch in self._window if not batch.is_acknowledged)
        under_way: deque[tuple[int, _Batch]] = deque()
        is_broken = False
        while True:
            while not is_broken and (again or self._may_send):
                batch = again.popleft() if again else self._new_batch()
                number = self._send(connection, self._request(batch), PRODUCE_VERSION)
                under_way.append((number, batch))
                if len(under_way) == 1:
                    time.sleep(APART_SECONDS)
            if not under_way:
                return
            number, batch = under_way.popleft()
            code = self._answer(connection, number, batch)
            if code is ErrorCode.NONE:
                continue
            if code not in MAY_PASS and not (code is OUT_OF_ORDER and is_broken):
                self.failures.append(f"{code.name} to sequence {batch.sequence}")
            is_broken = True

    @property
    def _may_send(self) -> bool:
        # A producer that is not known yet may begin with any sequence (KAFKA-14359).
        limit = UNDER_WAY if self.acknowledged or not self.manner.is_idempotent else 1
        return len(self._window) < limit and not self._stop_asked.is_set()

    def _new_batch(self) -> _Batch:
        batch = _Batch(len(self.sent), [])
        for _ in range(self._random.randint(1, self.manner.most_records)):
            mark = f"{self.name}:{len(self.sent):08}|".encode()
            length = max(self._random.randint(*self.manner.sizes), len(mark))
            value = (mark * (length // len(mark) + 1))[:length]
            batch.values.append(value)
            self.sent.append(value)
        self._window.append(batch)
        return batch

    def _request(self, batch: _Batch) -> ProduceRequest:
        records = [NewRecord(BASE_TIMESTAMP_MS, None, value) for value in batch.values]
        if self.manner.is_idempotent:
            built = build_batch(
                records,
                producer_id=self._producer_id,
                producer_epoch=0,
                base_sequence=batch.sequence,
            )
        else:
            built = build_batch(records)
        data = ProduceRequest.TopicData.PartitionData(index=self.partition, records=built)
        topic = ProduceRequest.TopicData(name=self._topic, partition_data=[data])
        return ProduceRequest(acks=self.manner.acks, timeout_ms=10_000, topic_data=[topic])

    def _answer(self, connection: wire.RawConnection, number: int, batch: _Batch) -> ErrorCode:
        """Take the next answer, which is to `batch`; returns its error."""
        start = response_header_bytes(ProduceRequest.API_KEY, PRODUCE_VERSION)
        frame = self._receive(connection, number)
        response, _ = ProduceResponse.decode_from(PRODUCE_VERSION, frame, start)
        (answer,) = response.responses[0].partition_responses
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            batch.is_acknowledged = True
            self.acknowledged += [
                (answer.base_offset + place, value) for place, value in enumerate(batch.values)
            ]
            while self._window and self._window[0].is_acknowledged:
                self._window.popleft()
        return code

    def _obtain_id(self, connection: wire.RawConnection) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        start = response_header_bytes(InitProducerIdRequest.API_KEY, INIT_VERSION)
        frame = self._receive(connection, self._send(connection, request, INIT_VERSION))
        response, _ = InitProducerIdResponse.decode_from(INIT_VERSION, frame, start)
        if response.error_code:
            raise ConnectionError(f"no producer id: {ErrorCode(response.error_code).name}")
        self._producer_id = response.producer_id

    def _send(self, connection: wire.RawConnection, request: Request, version: int) -> int:
        """Send a request; returns its number."""
        self._correlation_id += 1
        header = wire.request_header(request.API_KEY, version, self._correlation_id)
        connection.send(wire.framed(header + request.encode(version)))
        return self._correlation_id

    def _receive(self, connection: wire.RawConnection, number: int) -> memoryview:
        frame = memoryview(connection.receive())
        if int.from_bytes(frame[:4], "big") != number:
            self.failures.append(f"request {number} got the answer to another one")
            raise ConnectionError
        return frame
