"""A producer of records that wait, one batch at a time, each sent again until it is acknowledged.

It sends to two topics: one with delays, of which some records are cancelled, and a retry topic,
of which some records are dead at once. What it was told is held against the logs in the end
(`tests.simulation.checks.deliveries`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from broker.network.links import LinkError
from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from tests.simulation.checks.refusals import report
from tests.simulation.clients.client import RETRY_SECONDS, TIMEOUT_MS, Client
from tests.simulation.clients.producers import MAY_PASS, VERSION
from tests.simulation.cluster import EPOCH_MS

if TYPE_CHECKING:
    from tests.simulation.clients.values import At
    from tests.simulation.cluster import SimulatedCluster

ACKS_ALL: Final = -1
LATER: Final = "later", 0
AGAIN: Final = "again.retry", 0
DEAD: Final = "again.dlq", 0
MOST_ATTEMPTS: Final = 3
LONGEST_DELAY_MS: Final = 4000
CONFIGS: Final = {
    LATER[0]: {"delivery.delay.enable": "true"},
    AGAIN[0]: {
        "retry.policy": "exponential",
        "retry.backoff.ms": "500",
        "retry.max.attempts": str(MOST_ATTEMPTS),
    },
    DEAD[0]: {},
}
DELAYS: Final = b"0", b"1", b"40ms", b"1s", b"1s", b"2s", b"%d" % LONGEST_DELAY_MS


@dataclass(slots=True)
class Told:
    """Brokers' answers about one partition."""

    values: dict[int, bytes] = field(default_factory=dict)
    """By the offset that was acknowledged."""
    dead: list[bytes] = field(default_factory=list)
    """In the order in which they were sent."""
    cancelled: set[int] = field(default_factory=set)
    """Offsets whose cancellation was acknowledged."""
    sequence: int = 0


class DelayedProducer(Client):
    """Sends until it is done; see `told`."""

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        super().__init__(cluster, name)
        self.told: dict[At, Told] = {LATER: Told(), AGAIN: Told()}
        self.is_over = False
        self._producer_id = -1
        self._numbers = 0

    async def run(self) -> None:
        """Send until done, and until all that was sent is acknowledged."""
        while self._producer_id < 0:
            await self._obtain_id()
        async with asyncio.TaskGroup() as group:
            for at in self.told:
                group.create_task(self._feed(at))
        self.is_over = True

    async def _feed(self, at: At) -> None:
        told = self.told[at]
        while not self.is_done:
            if at == LATER and told.values and self.random.random() < 0.2:
                await self._cancel(at, self.random.choice(list(told.values)))
            else:
                await self._produce(at)
            await asyncio.sleep(self.random.uniform(0, 0.3))

    async def _produce(self, at: At) -> None:
        records = [self._record(at) for _ in range(self.random.randint(1, 4))]
        code, offset = await self._send(at, records)
        if code is not ErrorCode.NONE:
            report(f"{self.name}: {at[0]} answers {code.name} to what is right")
            return
        told = self.told[at]
        for place, record in enumerate(records):
            assert record.value is not None
            told.values[offset + place] = record.value
            if ("retry-attempt", b"%d" % MOST_ATTEMPTS) in record.headers:
                told.dead.append(record.value)

    def _record(self, at: At) -> NewRecord:
        self._numbers += 1
        value = b"%s-%d-" % (self.name.encode(), self._numbers)
        value += bytes(self.random.choice([0, 10, 500]))
        now_ms = EPOCH_MS + int(self.cluster.loop.now * 1000)
        headers: tuple[tuple[str, bytes], ...] = ()
        if at == AGAIN:
            headers = (("retry-attempt", b"%d" % self.random.randint(0, MOST_ATTEMPTS)),)
        elif self.random.random() < 0.7:
            headers = (("deliver-after", self.random.choice(DELAYS)),)
        return NewRecord(now_ms, None, value, headers)

    async def _cancel(self, at: At, offset: int) -> None:
        now_ms = EPOCH_MS + int(self.cluster.loop.now * 1000)
        record = NewRecord(now_ms, None, None, (("deliver-cancel", b"%d" % offset),))
        code, _ = await self._send(at, [record])
        if code is ErrorCode.NONE:
            self.told[at].cancelled.add(offset)

    async def _send(self, at: At, records: list[NewRecord]) -> tuple[ErrorCode, int]:
        """Send a batch until there is a verdict: an offset, or why not."""
        told = self.told[at]
        codec = self.random.choice([Codec.NONE, Codec.LZ4])
        while True:
            leader = self.leaders.get(at, -1)
            if leader >= 0:
                batch = build_batch(
                    records,
                    codec=codec,
                    producer_id=self._producer_id,
                    producer_epoch=0,
                    base_sequence=told.sequence,
                )
                code, offset = await self._ask(leader, at, batch)
                if code is ErrorCode.NONE:
                    told.sequence += len(records)
                if code not in MAY_PASS or code is ErrorCode.NONE:
                    return code, offset
            await self.refresh(at[0])
            await asyncio.sleep(self.random.uniform(0.02, 2 * RETRY_SECONDS))

    async def _ask(self, leader: int, at: At, batch: bytearray) -> tuple[ErrorCode, int]:
        data = ProduceRequest.TopicData.PartitionData(index=at[1], records=batch)
        topic = ProduceRequest.TopicData(name=at[0], partition_data=[data])
        request = ProduceRequest(acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        try:
            response = cast("ProduceResponse", await self.ask(leader, request, VERSION))
        except LinkError:
            return ErrorCode.NETWORK_EXCEPTION, -1
        (answered,) = response.responses[0].partition_responses
        return ErrorCode(answered.error_code), answered.base_offset

    async def _obtain_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        broker_id = self.random.randrange(len(self.cluster.machines))
        try:
            answer = cast("InitProducerIdResponse", await self.ask(broker_id, request, 4))
            self._producer_id = answer.producer_id
        except LinkError:
            pass
        await asyncio.sleep(RETRY_SECONDS)
