"""A shard with in-memory ports: virtual time, counted ids, a list for a log, inboxes for answers.

`Harness` is the broker's part in small: it appends, replays, answers, and runs timers when the
clock is turned. Every reply it hands out must be answered at most once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.groups.join import Caller
from coordinator.offsets.offset_store import NO_PRODUCER
from coordinator.settings import GroupSettings
from coordinator.shard import GroupShard
from protocol.errors import ErrorCode
from protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.coordinator.few_topics import FewTopics
from tests.coordinator.virtual_timers import VirtualTimers
from tests.support.broker_parts.steps import finished

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.effects import ShardEffects
    from coordinator.records import OffsetsRecord

GROUP = "orders"


@dataclass
class Inbox:
    """A reply port that remembers what it was given."""

    responses: list[Any] = field(default_factory=list)

    def complete(self, value: Any) -> None:
        assert not self.responses, "answered twice"
        self.responses.append(value)

    @property
    def is_parked(self) -> bool:
        return not self.responses

    @property
    def response(self) -> Any:
        assert self.responses, "still parked"
        return self.responses[0]

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.response.error_code)


class LogEntry(NamedTuple):
    """A record in the log, or, without one, the marker that ends a producer's transaction."""

    offset: int
    record: OffsetsRecord | None
    producer_id: int
    is_commit: bool = False


class Harness:
    """A shard and everything around it."""

    def __init__(
        self, settings: GroupSettings | None = None, topics: FewTopics | None = None
    ) -> None:
        self.settings = settings or GroupSettings()
        self.topics = topics or FewTopics()
        self.timers = VirtualTimers()
        self.now_ms = 1_000_000
        self.ids = 0
        self.log: list[LogEntry] = []
        self.append_error: ErrorCode | None = None
        self.commit_error: ErrorCode | None = None
        self.inboxes: list[Inbox] = []
        self.shard = GroupShard(self.settings, self.timers, self._new_id, self.topics)

    def run(self, effects: ShardEffects[OffsetsRecord]) -> None:
        """Do what the broker does with the outcome of a decision."""
        failed = effects.records and self.append_error
        if failed:
            for refused in effects.committed_answers:
                refused.reply.complete(refused.refuse(failed))
        else:
            producer = effects.producer
            self.append(effects.records, producer.producer_id if producer else NO_PRODUCER)
        for answer in effects.answers:
            answer.reply.complete(answer.response)
        if failed:
            if effects.on_append_failed is not None:
                self.run(effects.on_append_failed(failed, self.now_ms))
            return
        self._answer_committed(effects)
        if effects.on_replayed is not None:
            self.run(effects.on_replayed(self.now_ms))
        for job in getattr(effects, "jobs", ()):
            for step in job:
                if step is not None:
                    self.run(step)

    def _answer_committed(self, effects: ShardEffects[OffsetsRecord]) -> None:
        for committed in effects.committed_answers:
            refusal = self.commit_error
            response = committed.refuse(refusal) if refusal else committed.response
            committed.reply.complete(response)

    def append(self, records: Iterable[OffsetsRecord], producer_id: int = NO_PRODUCER) -> None:
        for record in records:
            self.load(LogEntry(self.log_end, record, producer_id))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Write a marker."""
        self.load(LogEntry(self.log_end, None, producer_id, is_commit))

    @property
    def log_end(self) -> int:
        """The offset of the next record."""
        return self.log[-1].offset + 1 if self.log else 0

    def compact(self, share: float, *, drops_tombstones: bool) -> None:
        """Keep of the first part of the log what comes last of each key there."""
        count = int(len(self.log) * share)
        cleaned, rest = self.log[:count], self.log[count:]
        last = {repr(one.record.key): one.offset for one in cleaned if one.record is not None}
        self.log = [
            one
            for one in cleaned
            if one.record is None
            or one.producer_id != NO_PRODUCER
            or (
                last[repr(one.record.key)] == one.offset
                and not (drops_tombstones and one.record.value is None)
            )
        ] + rest

    def load(self, entry: LogEntry) -> None:
        """Put an entry at the end of the log, and replay it."""
        self.log.append(entry)
        if entry.record is None:
            self.shard.end_transaction(entry.producer_id, is_commit=entry.is_commit)
        else:
            self.shard.replay(entry.record, entry.offset, entry.producer_id)

    @property
    def now_ms(self) -> int:
        """Return the wall clock's time. Setting it moves no timer: `advance` lets time pass."""
        return self.timers.now_ms + self._ahead_ms

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        self._ahead_ms = now_ms - self.timers.now_ms

    def advance(self, delay_ms: int) -> None:
        """Let time pass, by both clocks, running timers in order of their due time."""
        for key in self.timers.pass_until(self.timers.now_ms + delay_ms):
            self.run(self.shard.expire(key, self.now_ms))

    def restarted(self) -> Harness:
        """Return another broker that has loaded the records appended here."""
        other = Harness(self.settings, self.topics)
        other.now_ms = self.now_ms
        other.ids = self.ids
        for entry in self.log:
            other.load(entry)
        other.run(other.shard.on_loaded(self.now_ms))
        return other

    # Requests

    def join(  # noqa: PLR0913 - one keyword for each thing a client can say
        self,
        member_id: str = "",
        *,
        group_id: str = GROUP,
        instance: str | None = None,
        version: int = 9,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        client_id: str = "app",
    ) -> Inbox:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequest.Protocol(name=name, metadata=metadata)
                for name, metadata in (protocols or {"range": b"any"}).items()
            ],
        )
        inbox = self._inbox()
        caller = Caller(client_id, "/10.0.0.1", version)
        self.run(self.shard.handle_join(request, caller, inbox, self.now_ms))
        return inbox

    def join_twice(self, **options: Any) -> tuple[str, Inbox]:
        """Join as a client of version 4+ does: once for an id, once with it."""
        first = self.join(**options)
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.response.member_id
        return member_id, self.join(member_id, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        **options: Any,
    ) -> Inbox:
        request = SyncGroupRequest(
            group_id=options.pop("group_id", GROUP),
            generation_id=generation,
            member_id=member_id,
            assignments=[
                SyncGroupRequest.Assignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ],
            **options,
        )
        inbox = self._inbox()
        self.run(self.shard.handle_sync(request, inbox, self.now_ms))
        return inbox

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return self.shard.handle_heartbeat(request)

    def leave(self, *member_ids: str, group_id: str = GROUP) -> list[LeaveGroupResponse.Member]:
        return self.leave_members(
            *(LeaveGroupRequest.Member(member_id=each) for each in member_ids), group_id=group_id
        )

    def leave_members(
        self, *members: LeaveGroupRequest.Member, group_id: str = GROUP
    ) -> list[LeaveGroupResponse.Member]:
        left, effects = self.shard.handle_leave(group_id, members, self.now_ms)
        self.run(effects)
        return left

    def commit(  # noqa: PLR0913 - one keyword for each thing a client can say
        self,
        offset: int,
        *,
        group_id: str = GROUP,
        member_id: str = "",
        generation: int = -1,
        topic: str = "orders",
        partition: int = 0,
        metadata: str | None = "",
        version: int = 8,
        retention_ms: int = -1,
        epoch: int = -1,
        instance: str | None = None,
    ) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequest.Topic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequest.Topic.Partition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=epoch,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        inbox = self._inbox()
        self.run(self.shard.handle_offset_commit(request, version, inbox, self.now_ms))
        response: OffsetCommitResponse = inbox.response
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def commit_in_transaction(  # noqa: PLR0913 - one keyword for each thing a client can say
        self,
        offset: int,
        *,
        producer_id: int = 7,
        group_id: str = GROUP,
        member_id: str = "",
        generation: int = -1,
        topic: str = "orders",
        partition: int = 0,
        metadata: str | None = "",
        instance: str | None = None,
        version: int = 5,
    ) -> ErrorCode:
        position = TxnOffsetCommitRequest.Topic.Partition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata=metadata,
        )
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=group_id,
            producer_id=producer_id,
            producer_epoch=0,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=[TxnOffsetCommitRequest.Topic(name=topic, partitions=[position])],
        )
        inbox = self._inbox()
        self.run(self.shard.handle_transactional_commit(request, version, inbox, self.now_ms))
        return ErrorCode(inbox.response.topics[0].partitions[0].error_code)

    def fetch(
        self,
        topic: str = "orders",
        partition: int = 0,
        group_id: str = GROUP,
        *,
        require_stable: bool = False,
    ) -> Any:
        request = OffsetFetchRequest.Group(
            group_id=group_id,
            topics=[OffsetFetchRequest.Group.Topic(name=topic, partition_indexes=[partition])],
        )
        answer = finished(self.shard.handle_offset_fetch(request, require_stable=require_stable))
        return answer.topics[0].partitions[0]

    def stored_offsets(self, group_id: str = GROUP) -> dict[tuple[str, int], int]:
        request = OffsetFetchRequest.Group(group_id=group_id, topics=None)
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in finished(self.shard.handle_offset_fetch(request)).topics
            for each in topic.partitions
        }

    # Ready-made groups

    def stable_group(self, size: int = 2, **options: Any) -> list[str]:
        """Members of a group in generation 1 that is STABLE; the first one leads."""
        joins = [self.join_twice(**options) for _ in range(size)]
        while joins[0][1].is_parked:
            self.advance(1_000)
        members = [member_id for member_id, _ in joins]
        leader: JoinGroupResponse = joins[0][1].response
        assert leader.error_code == ErrorCode.NONE
        self.settle(members, leader.generation_id)
        return members

    def settle(self, members: list[str], generation: int) -> None:
        """Assign as the leader, the first of `members`, and sync the others."""
        assignments = {each: f"part of {each}".encode() for each in members}
        for member_id in members[1:]:
            assert self.sync(member_id, generation).is_parked
        response: SyncGroupResponse = self.sync(members[0], generation, assignments).response
        assert response.error_code == ErrorCode.NONE

    def _inbox(self) -> Inbox:
        self.inboxes.append(Inbox())
        return self.inboxes[-1]

    def _new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:04}"
