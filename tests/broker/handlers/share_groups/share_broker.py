"""`DataBroker` for share groups: on a store of share state and a clock that the test has."""

from __future__ import annotations

import asyncio
import dataclasses
import heapq
import itertools
from typing import TYPE_CHECKING, Any

from broker.runtime.deferred import Deferred
from broker.share_partitions.first_offset import FirstOffsets
from broker.share_partitions.led_partition import ShareParts
from broker.share_partitions.share_partitions import SharePartitions
from config.broker import BrokerConfig
from coordinator.share_partitions.settings import (
    AutoOffsetReset,
    ResetKind,
    ShareGroupSettings,
)
from coordinator.share_state.state import (
    NO_START_OFFSET,
    SharePartition,
    StateBatch,
    StateChange,
    StoredState,
)
from protocol.errors import ApiError, ErrorCode
from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from tests.broker.handlers.data_broker import TOPIC, DataBroker, records
from tests.broker.handlers.one_broker import as_bytes
from tests.controller.harness import NOW_MS
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from broker.partitions.partition import Partition
    from protocol.schema import Request

GROUP = "workers"
LOCK_MS = 30_000
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
SETTINGS = ShareGroupSettings(
    delivery_count_limit=5,
    max_record_locks=200,
    record_lock_duration_ms=LOCK_MS,
    auto_offset_reset=AutoOffsetReset(ResetKind.EARLIEST),
)


class HeldTime:
    """A clock and its timers: nothing happens before `pass_`."""

    def __init__(self) -> None:
        self._now_ms = NOW_MS
        self._order = itertools.count()
        self._due: list[tuple[float, int, HeldTimer]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._now_ms

    def soon(self, callback: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> HeldTimer:
        timer = HeldTimer(callback)
        heapq.heappush(self._due, (self._now_ms + delay_ms, next(self._order), timer))
        return timer

    def pass_(self, ms: int) -> None:
        """Advance the time, and fire timers."""
        self._now_ms += ms
        while self._due and self._due[0][0] <= self._now_ms:
            heapq.heappop(self._due)[2].fire()


class HeldTimer:
    """Timer that may be cancelled."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()


class ShareStateInMemory:
    """State of a share partition, as a share coordinator keeps it."""

    def __init__(self) -> None:
        self.start_offset = NO_START_OFFSET
        self.records: dict[int, tuple[int, int]] = {}
        """Delivery count and state, by offset."""
        self.changes: list[StateChange] = []
        self.refusal: ErrorCode | None = None
        """Error code of all further answers."""
        self.is_held = False
        self.held: list[Callable[[], None]] = []
        """Answers to reads and writes, while they are held."""

    def read(self, partition: SharePartition, leader_epoch: int) -> Deferred[StoredState]:
        batches: list[StateBatch] = []
        for offset, (count, state) in sorted(self.records.items()):
            last = batches[-1] if batches else None
            if last is not None and last[1:] == (offset - 1, state, count):
                batches[-1] = last._replace(last_offset=offset)
            elif offset >= self.start_offset:
                batches.append(StateBatch(offset, offset, state, count))
        stored = StoredState(1, self.start_offset, tuple(batches))
        return self._answer(lambda: stored)

    def write(self, partition: SharePartition, change: StateChange) -> Deferred[None]:
        return self._answer(lambda: self._apply(change))

    def _apply(self, change: StateChange) -> None:
        self.changes.append(change)
        self.start_offset = change.start_offset
        for batch in change.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                new = batch.delivery_count, batch.delivery_state
                self.records[offset] = max(new, self.records.get(offset, new))

    def _answer(self, decide: Callable[[], Any]) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()

        def give() -> None:
            if self.refusal is not None:
                answer.fail(ApiError(self.refusal))
            else:
                answer.complete(decide())

        if self.is_held:
            self.held.append(give)
        else:
            give()
        return answer

    def let_go(self) -> None:
        """Answer what is held, and hold nothing more."""
        self.is_held = False
        held, self.held = self.held, []
        for give in held:
            give()


class SettingsOfTest:
    """The same for every group."""

    def __init__(self) -> None:
        self.present = SETTINGS

    def settings_of(self, group_id: str) -> ShareGroupSettings:
        return self.present


class Peer:
    """A client's connection."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def hang_up(self) -> None:
        for callback in self._callbacks:
            callback()


class ShareBroker(DataBroker):
    """A broker that serves share groups."""

    def __init__(self, directory: Path, config: BrokerConfig) -> None:
        super().__init__(directory, config)
        self.time, self.state, self.settings = HeldTime(), ShareStateInMemory(), SettingsOfTest()
        self.peer: Peer | None = None
        services, background = self.services, self.foundation.machine.background
        loop = background._replace(clock=self.time)
        first_offsets = FirstOffsets(loop, services.spawn, services.compute_pool)
        parts = ShareParts(
            self.time,
            self.time,  # type: ignore[arg-type]  # it has what is used
            self.state,
            first_offsets,
            self.settings,
        )
        limit = config.group_share_max_share_sessions
        services.share_partitions = SharePartitions(parts, services.replicas, limit)
        services.replicas.on_leadership_change(services.share_partitions.partition_changed)

    def context(self, version: int, client_id: str | None = "a-client") -> Any:
        context = super().context(version, client_id)
        context.client = self.peer  # type: ignore[assignment]  # it has what is used
        return context

    async def ask(self, request: Request, version: int) -> Any:
        answer = self.call(request, version)
        if isinstance(answer, Deferred):
            answer = await arrival(answer)
        encoded = b"".join(as_bytes(part) for part in answer.encode_parts(version))
        return type(request).RESPONSE.decode(version, encoded)

    def set(self, **fields: Any) -> None:
        """Change the group's settings."""
        self.settings.present = dataclasses.replace(self.settings.present, **fields)

    @property
    def partition(self) -> Partition:
        found = self.replicas.partition(TOPIC, 0)
        assert found is not None
        return found

    async def fill(self, batches: int = 3, count: int = 3) -> None:
        """A topic whose batches hold as many records each."""
        await self.create_topic()
        for _ in range(batches):
            await self.produce({(TOPIC, 0): records(count)})

    def share_fetch(self, *acks: tuple[int, ...], version: int = 2, **fields: Any) -> Any:
        """Return the handler's result; `acks` are (first, last, type, …)."""
        return self.call(self.fetch_request(*acks, **fields), version)

    async def fetched(self, *acks: tuple[int, ...], version: int = 2, **fields: Any) -> Any:
        """The answer for the partition, from over the wire; None if it has none."""
        response = await self.ask(self.fetch_request(*acks, **fields), version)
        parts = [part for topic in response.responses for part in topic.partitions]
        return parts[0] if parts else None

    def fetch_request(self, *acks: tuple[int, ...], **fields: Any) -> ShareFetchRequest:
        kind = ShareFetchRequest.Topic.Partition
        batches = [
            kind.AcknowledgementBatch(first_offset=one, last_offset=last, acknowledge_types=types)
            for one, last, *types in acks
        ]
        index = fields.pop("index", 0)
        topic = ShareFetchRequest.Topic(
            topic_id=fields.pop("topic_id", None) or self.metadata.topic_id(TOPIC),
            partitions=[kind(partition_index=index, acknowledgement_batches=batches)],
        )
        values: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": "one",
            "share_session_epoch": 0,
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": [topic],
            "forgotten_topics_data": [],
            **fields,
        }
        return ShareFetchRequest(**values)

    async def acknowledge(self, epoch: int, *acks: tuple[int, ...], **fields: Any) -> Any:
        """The answer for the partition to a ShareAcknowledge."""
        kind = ShareAcknowledgeRequest.Topic.Partition
        batches = [
            kind.AcknowledgementBatch(first_offset=one, last_offset=last, acknowledge_types=types)
            for one, last, *types in acks
        ]
        topic = ShareAcknowledgeRequest.Topic(
            topic_id=self.metadata.topic_id(TOPIC),
            partitions=[kind(partition_index=0, acknowledgement_batches=batches)],
        )
        values: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": "one",
            "share_session_epoch": epoch,
            "topics": [topic],
            **fields,
        }
        response = await self.ask(ShareAcknowledgeRequest(**values), fields.pop("version", 2))
        return response.responses[0].partitions[0] if response.responses else response


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    """First and last offset and delivery count of what a member got."""
    if answer is None:
        return []
    return [
        (one.first_offset, one.last_offset, one.delivery_count) for one in answer.acquired_records
    ]


async def later(answer: Any) -> Any:
    """The answer for the partition, of what a handler has returned."""
    response = await arrival(answer) if isinstance(answer, Deferred) else answer
    parts = [part for topic in response.responses for part in topic.partitions]
    return parts[0] if parts else None


def run_share_broker(
    directory: Path, scenario: Callable[[ShareBroker], Coroutine[None, None, None]], **keys: Any
) -> None:
    """Run a scenario on a broker whose configuration differs from the default by `keys`."""

    async def main() -> None:
        started = ShareBroker(directory, BrokerConfig(**keys))
        await started.start()
        try:
            await scenario(started)
        finally:
            started.services.share_partitions.stop()
            await started.stop()

    asyncio.run(main())
