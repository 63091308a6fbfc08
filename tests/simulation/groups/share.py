"""A member of a share group: it acquires records from all leaders, and does with them as it likes.

It accepts most; some it releases, rejects, renews, or keeps until their lock expires. Towards the
end it accepts all.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.network.links import LinkError
from coordinator.share_partitions.record_range import AcknowledgeType
from protocol.errors import ErrorCode
from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from protocol.messages.share_groups import ShareGroupHeartbeatRequest
from protocol.records.batch import compute_crc, iterate_headers
from protocol.records.record import iterate_records
from tests.simulation.checks.refusals import report
from tests.simulation.groups.member import FENCED, TOPIC, Traveller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from tests.simulation.checks.share_deliveries import ShareDeliveries
    from tests.simulation.clients.pipeline import Pipeline
    from tests.simulation.clients.values import Sent
    from tests.simulation.cluster import SimulatedCluster

HEARTBEAT_VERSION: Final = 1
VERSION: Final = 2
LEAVING: Final = -1
CLOSING: Final = -1
KEEP: Final = -1
"""Instead of an acknowledgement: wait until the lock expires."""
KINDS: Final = (
    *(AcknowledgeType.ACCEPT,) * 6,
    *(AcknowledgeType.RELEASE,) * 4,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
    *(KEEP,) * 2,
)
SESSION_LOST: Final = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)


class Batch(NamedTuple):
    """Records that it has acquired, all with one delivery count."""

    partition: int
    first: int
    last: int
    delivery_count: int


@dataclass(slots=True)
class Session:
    """At one leader, on one connection."""

    link: Pipeline
    epoch: int = 0
    partitions: set[int] = field(default_factory=set)
    held: list[Batch] = field(default_factory=list)


Doing = dict[Batch, list[int]]
"""Types of acknowledgement, one for each record."""


class ShareMember(Traveller):
    """Reads what it is assigned."""

    def __init__(
        self, cluster: SimulatedCluster, name: str, deliveries: ShareDeliveries, sent: Sent
    ) -> None:
        super().__init__(cluster, name, deliveries.group_id)
        self.epoch = 0
        self._deliveries = deliveries
        self._sent = sent
        self._topic_id: UUID | None = None
        self._assigned: set[int] = set()
        self._sessions: dict[int, Session] = {}
        self._max_records = self.random.choice((1, 5, 500))
        self._rests = self.random.choice((0.0, 0.0, 0.5, 2.0))
        """Longest time to process acquired records."""

    async def act(self) -> None:
        if not await self.find():
            return
        if self.is_beat_due:
            await self._heartbeat()
        wanted = defaultdict(set)
        for partition in self._assigned:
            wanted[self.leaders.get((TOPIC, partition), -1)].add(partition)
        if -1 in wanted:
            await self.refresh(TOPIC)
        for broker_id in {*wanted, *self._sessions} - {-1}:
            try:
                await self._visit(broker_id, wanted[broker_id])
            except LinkError:
                self._sessions.pop(broker_id, None)
                await self.refresh(TOPIC)

    async def _heartbeat(self) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.name,
            member_epoch=self.epoch,
            subscribed_topic_names=None if self.epoch else [TOPIC],
        )
        response = await self.ask(self.coordinator, request, HEARTBEAT_VERSION)
        code = ErrorCode(response.error_code)
        if code in FENCED:
            self.epoch, self._assigned = 0, set()
        elif code is not ErrorCode.NONE:
            self.note(code, "ShareGroupHeartbeat")
        else:
            if response.member_epoch < self.epoch:
                report(f"epoch of {self.name} fell from {self.epoch} to {response.member_epoch}")
            self.epoch = response.member_epoch
            told = self._deliveries
            told.newest_epoch = max(told.newest_epoch, self.epoch)
            if response.assignment is not None:
                self._assigned = set()
                for each in response.assignment.topic_partitions:
                    self._topic_id = each.topic_id
                    self._assigned |= set(each.partitions)

    async def leave(self) -> None:
        """Close all sessions and leave; raises LinkError."""
        for session in self._sessions.values():
            if not session.link.is_lost:
                await self._acknowledge(session, {}, CLOSING)
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.name, member_epoch=LEAVING
        )
        if await self.find():
            await self.ask(self.coordinator, request, HEARTBEAT_VERSION)

    # Records

    async def _visit(self, broker_id: int, wanted: set[int]) -> None:
        """Acknowledge what is held of a leader, and acquire more; raises LinkError."""
        session = self._sessions.get(broker_id)
        if session is None or session.link.is_lost:
            if not wanted:
                self._sessions.pop(broker_id, None)
                return
            session = self._sessions[broker_id] = Session(await self.link(broker_id))
        if session.epoch and self._rests and not self.is_done:
            await asyncio.sleep(self.random.uniform(0.0, self._rests))
        doing, session.held = self._decide(session.held), []
        is_renewal = any(AcknowledgeType.RENEW in types for types in doing.values())
        if doing and (is_renewal or self.random.random() < 0.5):
            epoch = self._next_epoch(session)
            if not await self._acknowledge(session, doing, epoch, is_renewal=is_renewal):
                self._sessions.pop(broker_id, None)
                return
            doing = {}
        if not await self._fetch(session, wanted, doing):
            self._sessions.pop(broker_id, None)

    def _decide(self, held: list[Batch]) -> Doing:
        doing: Doing = {}
        for batch in held:
            length = batch.last - batch.first + 1
            if self.is_done:
                doing[batch] = [AcknowledgeType.ACCEPT] * length
            elif (kind := self.random.choice(KINDS)) == KEEP:
                continue
            elif self.random.random() < 0.7:
                doing[batch] = [kind] * length
            else:
                some = [each for each in KINDS if each not in (KEEP, AcknowledgeType.RENEW)]
                doing[batch] = [self.random.choice(some) for _ in range(length)]
        return doing

    @staticmethod
    def _next_epoch(session: Session) -> int:
        epoch, session.epoch = session.epoch, session.epoch + 1
        return epoch

    async def _acknowledge(
        self, session: Session, doing: Doing, epoch: int, *, is_renewal: bool = False
    ) -> bool:
        """Returns whether the session still stands; raises LinkError."""
        topics = ShareAcknowledgeRequest.Topic
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.name,
            share_session_epoch=epoch,
            is_renew_ack=is_renewal,
            topics=self._named(topics, doing),
        )
        response = (await self.outcome(session.link, session.link.ask(request, VERSION))).response
        if not self._stands(ErrorCode(response.error_code), "ShareAcknowledge"):
            return False
        for topic in response.responses:
            for told in topic.partitions:
                self._settle(session, doing, told.partition_index, told.error_code)
        return True

    def _named(self, kind: Any, doing: Doing, others: Iterator[int] | None = None) -> list[Any]:
        """The topic of a request, with acknowledgements; `others` have none."""
        batches = defaultdict(list)
        for each in sorted(doing):
            batches[each.partition].append(
                kind.Partition.AcknowledgementBatch(
                    first_offset=each.first, last_offset=each.last, acknowledge_types=doing[each]
                )
            )
        for partition in others or ():
            batches.setdefault(partition, [])
        partitions = [
            kind.Partition(partition_index=each, acknowledgement_batches=batches[each])
            for each in sorted(batches)
        ]
        return [kind(topic_id=self._topic_id, partitions=partitions)] if partitions else []

    def _stands(self, code: ErrorCode, what: str) -> bool:
        if code in SESSION_LOST:
            return False
        if code is not ErrorCode.NONE:
            self.note(code, what)
            return False
        return True

    def _settle(self, session: Session, doing: Doing, partition: int, error_code: int) -> None:
        """The acknowledgements of one partition were answered."""
        for batch, types in doing.items():
            if batch.partition != partition or error_code:
                continue
            self._deliveries.accepted(
                self.name, partition, batch.first, types, batch.delivery_count
            )
            if AcknowledgeType.RENEW in types:
                session.held.append(batch)

    async def _fetch(self, session: Session, wanted: set[int], doing: Doing) -> bool:
        """Returns whether the session still stands; raises LinkError."""
        epoch = self._next_epoch(session)
        added = iter(wanted if not epoch else wanted - session.partitions)
        forgotten = [] if not epoch else sorted(session.partitions - wanted)
        gone = ShareFetchRequest.ForgottenTopicsData
        assert self._topic_id is not None, "it was assigned something"
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.name,
            share_session_epoch=epoch,
            max_wait_ms=self.random.choice((0, 50, 200)),
            min_bytes=1,
            max_bytes=self.random.choice((1000, 1 << 20)),
            max_records=self._max_records,
            batch_size=self._max_records,
            share_acquire_mode=self.random.choice((0, 1)),
            topics=self._named(ShareFetchRequest.Topic, doing, added),
            forgotten_topics_data=(
                [gone(topic_id=self._topic_id, partitions=forgotten)] if forgotten else []
            ),
        )
        session.partitions = set(wanted)
        response = (await self.outcome(session.link, session.link.ask(request, VERSION))).response
        if not self._stands(ErrorCode(response.error_code), "ShareFetch"):
            return False
        is_elsewhere = False
        for topic in response.responses:
            for told in topic.partitions:
                index = told.partition_index
                self._settle(session, doing, index, told.acknowledge_error_code)
                is_elsewhere |= bool(told.error_code)
                self._take(session, told)
        if is_elsewhere:
            await self.refresh(TOPIC)
        return True

    def _take(self, session: Session, told: Any) -> None:
        """Look at what was acquired."""
        index = told.partition_index
        view = memoryview(bytes(told.records or b""))
        found = set()
        for position, header in iterate_headers(view):
            size = header.size_in_bytes
            if compute_crc(view, position, size) != header.crc:
                report(f"{self.name}: the batch at offset {header.base_offset} is damaged")
                return
            for record in iterate_records(view[position : position + size]):
                assert record.value is not None
                self._sent.recognise((TOPIC, index), bytes(record.value), self.name)
                found.add(record.offset)
        for each in told.acquired_records:
            missing = set(range(each.first_offset, each.last_offset + 1)) - found
            if missing:
                report(
                    f"{self.name}: {TOPIC}-{index} from {each.first_offset} to {each.last_offset} "
                    f"is acquired, and comes without {sorted(missing)}"
                )
            session.held.append(
                Batch(index, each.first_offset, each.last_offset, each.delivery_count)
            )
