"""Producers with five requests under way on each partition, on one connection to each broker.

An idempotent one keeps Kafka's rules for clients: sequences, and after an error everything again
that is not acknowledged, in order. A plain one sends each batch once and does not ask twice.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from broker.network.links import LinkError
from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from protocol.records.builder import NewRecord, build_batch
from tests.simulation.checks.refusals import report
from tests.simulation.clients.client import RETRY_SECONDS, TIMEOUT_MS, Client
from tests.simulation.clients.readers import fetch_request, records_of
from tests.simulation.cluster import EPOCH_MS

if TYPE_CHECKING:
    from tests.simulation.checks.promptness import Promptness
    from tests.simulation.clients.pipeline import Answer, Pipeline
    from tests.simulation.clients.values import At, Sent
    from tests.simulation.cluster import SimulatedCluster

UNDER_WAY = 5
VERSION = 9
ACKS_ALL = -1
LENGTHS = (10, 60), (10, 1500), (10, 25_000)
"""Of values: what five batches of the longest need is more than a connection's first buffer."""
QUITS = 0.0, 0.0, 0.02, 0.1
"""Probabilities that it closes the connection while the answer to a batch is on its way."""
PAUSES_SECONDS = 0.05, 0.3, 0.3, 1.5

DUPLICATE = ErrorCode.DUPLICATE_SEQUENCE_NUMBER
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
MAY_PASS = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors after which a producer retries; all others are final for the records sent."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Settings of a producer."""

    is_idempotent: bool
    acks: int


KINDS = Kind(True, ACKS_ALL), Kind(False, ACKS_ALL), Kind(False, 1)


@dataclass(slots=True)
class Batch:
    """Values that are sent together."""

    writer: str
    numbers: list[int]
    values: list[bytes]
    sequence: int
    offset: int = -1
    """Offset of its first record, once acknowledged."""
    sends: int = 0


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A record that a broker says is stored."""

    offset: int
    value: bytes
    broker: tuple[int, int]
    """The broker that acknowledged, and its incarnation."""
    sent_at: float


class Producer(Client):
    """Produces to all partitions of the topics; see `acknowledged`."""

    def __init__(self, cluster: SimulatedCluster, name: str, kind: Kind, sent: Sent) -> None:
        super().__init__(cluster, name)
        self.kind = kind
        self.sent = sent
        self.promptness: Promptness = cluster.promptness
        self.lengths = LENGTHS[self.random.randrange(cluster.length_choices)]
        self.pause_seconds = self.random.choice(PAUSES_SECONDS)
        self.fetches = self.random.random() < 0.5
        """It reads its own records on the connection that it writes on."""
        self.acknowledged: dict[At, list[Acknowledged]] = {}
        """In the order of their acknowledgement."""
        self.count = 0
        """Number of records acknowledged."""
        self._quits = self.random.choice(QUITS)
        self.connections = 0
        self._writers: dict[Pipeline, str] = {}
        self.producer_id = -1
        self._lanes: list[_Lane] = []

    async def run(self, partitions: list[At]) -> None:
        """Produce to all partitions until done."""
        while self.kind.is_idempotent and self.producer_id < 0:
            await self._obtain_id()
        self._lanes = [_Lane(self, at) for at in partitions]
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(lane.run())

    def unfinished(self) -> str:
        """Describe the unfinished work."""
        lanes = [f"{lane.at[0]}-{lane.at[1]}" for lane in self._lanes if not lane.is_over]
        if not lanes and self._lanes:
            return ""
        return f"{self.name} is not done with {', '.join(lanes)}, waits for {self.waits_for()}"

    def writer(self, link: Pipeline) -> str:
        """Return the writer's name in a record's value: order is certain on one connection only."""
        if self.kind.is_idempotent:
            return self.name
        if link not in self._writers:
            self.connections += 1
            self._writers[link] = f"{self.name}.{self.connections}"
        return self._writers[link]

    def forget(self) -> None:
        """The run is over: free what was sent."""
        self.acknowledged.clear()
        self._writers.clear()
        self._lanes.clear()

    def may_quit(self, link: Pipeline) -> None:
        """A batch was sent: perhaps break the connection off about when it is committed."""
        if self.random.random() < self._quits and not self.is_done:
            longest = 4 * self.cluster.network.latency_ms[1] / 1000
            self.cluster.loop.call_later(
                self.random.uniform(0, longest), lambda: link.hang_up(is_reset=True)
            )

    async def _obtain_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        broker_id = self.random.randrange(len(self.cluster.machines))
        try:
            answer = cast("InitProducerIdResponse", await self.ask(broker_id, request, 4))
            self.producer_id = answer.producer_id
        except LinkError:
            pass
        await asyncio.sleep(RETRY_SECONDS)


class _Lane:
    """Batches of one producer to one partition."""

    def __init__(self, producer: Producer, at: At) -> None:
        self._producer = producer
        self.at = at
        self._random = producer.random
        self._window: deque[Batch] = deque()
        """Not acknowledged, or behind one that is not; never more than may be under way."""
        self._next_sequence = 0
        self.is_over = False
        self._is_known = False
        """The broker knows the producer: before that, one batch at a time (KAFKA-14359)."""

    async def run(self) -> None:
        producer = self._producer
        while not producer.is_done or self._window:
            leader = producer.leaders.get(self.at, -1)
            try:
                if leader >= 0:
                    await self._pass(leader, await producer.link(leader))
            except LinkError:
                pass
            if not producer.kind.is_idempotent:
                self._window.clear()
            if producer.is_done and not self._window:
                break
            if self._random.random() < 0.7:
                await producer.refresh(self.at[0])
            await asyncio.sleep(self._random.uniform(0.02, 2 * RETRY_SECONDS))
        self.is_over = True

    async def _pass(self, leader: int, link: Pipeline) -> None:
        """Send on one connection until done, or until an answer is an error."""
        producer = self._producer
        again = deque(batch for batch in self._window if batch.offset < 0)
        under_way: deque[tuple[Batch, asyncio.Future[Answer]]] = deque()
        is_broken = False
        while not link.is_lost and not is_broken:
            while again or (len(self._window) < self._width and not producer.is_done):
                batch = again.popleft() if again else self._new_batch(link)
                under_way.append((batch, self._send(link, batch)))
                if self._random.random() < 0.3:
                    break
            if not under_way:
                return
            is_broken = not await self._settle(leader, link, *under_way.popleft())
            if self.pause and not again:
                await self._rest()
        for batch, answer in under_way:
            await self._settle(leader, link, batch, answer, is_behind_error=True)

    async def _rest(self) -> None:
        """Until it sends more: for some time, or until all producers of the run do."""
        cluster = self._producer.cluster
        if cluster.beat_seconds:
            beats = cluster.loop.now / cluster.beat_seconds
            await asyncio.sleep((math.ceil(beats + 1e-6) - beats) * cluster.beat_seconds)
        else:
            await asyncio.sleep(self._random.uniform(0, self.pause))

    @property
    def pause(self) -> float:
        """Return the pause after an answer."""
        return 0.0 if self._producer.is_done else self._producer.pause_seconds

    @property
    def _width(self) -> int:
        if self._producer.kind.is_idempotent and not self._is_known:
            return 1
        return UNDER_WAY

    def _new_batch(self, link: Pipeline) -> Batch:
        producer = self._producer
        writer = producer.writer(link)
        batch = Batch(writer, [], [], self._next_sequence)
        for _ in range(self._random.randint(1, 5)):
            length = self._random.randint(*producer.lengths)
            number, value = producer.sent.new(writer, self.at, length)
            batch.numbers.append(number)
            batch.values.append(value)
        self._next_sequence += len(batch.values)
        self._window.append(batch)
        return batch

    def _send(self, link: Pipeline, batch: Batch) -> asyncio.Future[Answer]:
        producer = self._producer
        batch.sends += 1
        answer = link.ask(self._request(batch), VERSION)
        for listener in producer.sent.listeners:
            listener(self.at)
        producer.may_quit(link)
        if producer.fetches and self._random.random() < 0.2:
            start = self._random.choice([one.offset for one in self._acknowledged] or [0])
            read = link.ask(fetch_request(self.at, start, 0, 100_000), 11)
            read.add_done_callback(self._look)
        return answer

    def _request(self, batch: Batch) -> ProduceRequest:
        producer = self._producer
        now_ms = EPOCH_MS + int(producer.cluster.loop.now * 1000)
        records = [NewRecord(now_ms, None, value) for value in batch.values]
        if producer.kind.is_idempotent:
            built = build_batch(
                records,
                producer_id=producer.producer_id,
                producer_epoch=0,
                base_sequence=batch.sequence,
            )
        else:
            built = build_batch(records)
        data = ProduceRequest.TopicData.PartitionData(index=self.at[1], records=built)
        topic = ProduceRequest.TopicData(name=self.at[0], partition_data=[data])
        return ProduceRequest(acks=producer.kind.acks, timeout_ms=TIMEOUT_MS, topic_data=[topic])

    async def _settle(
        self,
        leader: int,
        link: Pipeline,
        batch: Batch,
        answer: asyncio.Future[Answer],
        *,
        is_behind_error: bool = False,
    ) -> bool:
        """Wait for the answer to a batch; returns whether it is acknowledged."""
        producer = self._producer
        try:
            got = await producer.outcome(link, answer)
        except LinkError:
            return False
        (told,) = cast("ProduceResponse", got.response).responses[0].partition_responses
        code = ErrorCode(told.error_code)
        broker = leader, link.life
        # What is sent again may have been committed before all of it is there.
        if producer.kind.acks == ACKS_ALL and told.base_offset >= 0 and batch.sends == 1:
            end = told.base_offset + len(batch.values)
            producer.promptness.judge(got, self.at, broker, end)
        if code is ErrorCode.NONE or (code is DUPLICATE and told.base_offset >= 0):
            batch.offset = told.base_offset
            self._acknowledged.extend(
                Acknowledged(told.base_offset + place, value, broker, got.sent_at)
                for place, value in enumerate(batch.values)
            )
            producer.count += len(batch.values)
            self._is_known = True
            while self._window and self._window[0].offset >= 0:
                self._window.popleft()
            return True
        if code not in MAY_PASS and not (code is OUT_OF_ORDER and is_behind_error):
            report(
                f"{producer.name}: {self.at[0]}-{self.at[1]} answers {code.name} "
                f"({told.error_message}) to sequence {batch.sequence}"
            )
        return False

    @property
    def _acknowledged(self) -> list[Acknowledged]:
        return self._producer.acknowledged.setdefault(self.at, [])

    def _look(self, read: asyncio.Future[Answer]) -> None:
        """Check the records read between two writes."""
        if not read.cancelled() and read.exception() is None:
            for _, value in records_of(read.result().response, self._producer.name):
                self._producer.sent.recognise(self.at, value, self._producer.name)
