"""A consumer of the classic protocol, which gives up everything before it joins again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from tests.simulation.groups.member import (
    FENCED,
    NO_BROKER,
    PARTITIONS,
    REBALANCE_TIMEOUT_MS,
    TOPIC,
    Member,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.messages.group_membership import JoinGroupResponse
    from tests.simulation.clients.pipeline import Pipeline

SESSION_TIMEOUT_MS = 3000
JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
LEAVE_VERSION = 5
PROTOCOL_VERSION = 1
PROTOCOL = "range"


class ClassicMember(Member):
    """Its epoch is the generation; 0 when it has to join."""

    commit_version = 8
    fetch_version = 8
    _link: Pipeline | None = None
    """On which it was told what it owns: only there it asks where to begin."""

    async def heartbeat(self) -> None:
        if not self.epoch:
            await self._join()
            return
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.epoch, member_id=self.member_id
        )
        response = await self.ask(self.coordinator, request, HEARTBEAT_VERSION)
        code = ErrorCode(response.error_code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            await self.commit(self.positions)
            self.abandon()
        elif code in FENCED:
            self._forget(code)
        elif code is not ErrorCode.NONE:
            self.note(code, "Heartbeat")

    def _forget(self, code: ErrorCode) -> None:
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self.abandon()

    async def _find_position(self, partition: int) -> None:
        """Another broker may not know of the generation, and its positions may be of before."""
        if self.coordinator == NO_BROKER or self._links.get(self.coordinator) is not self._link:
            self.abandon()
            return
        await super()._find_position(partition)

    async def _join(self) -> None:
        subscription = ConsumerProtocolSubscription(topics=[TOPIC])
        metadata = subscription.encode_versioned(PROTOCOL_VERSION)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name=PROTOCOL, metadata=metadata)],
        )
        self._link = await self.link(self.coordinator)
        response = await self.ask(self.coordinator, request, JOIN_VERSION)
        code = ErrorCode(response.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._beats_at = 0.0
        elif code in FENCED:
            self._forget(code)
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._beats_at = 0.0
        elif code is not ErrorCode.NONE:
            self.note(code, "JoinGroup")
        else:
            self.member_id = response.member_id
            await self._sync(response)

    async def _sync(self, joined: JoinGroupResponse) -> None:
        is_leader = joined.leader == self.member_id
        members = [each.member_id for each in joined.members] if is_leader else []
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=_shared_out(members),
        )
        response = await self.ask(self.coordinator, request, SYNC_VERSION)
        code = ErrorCode(response.error_code)
        if code in FENCED:
            self._forget(code)
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._beats_at = 0.0
        elif code is not ErrorCode.NONE:
            self.note(code, "SyncGroup")
        elif self._links.get(self.coordinator) is self._link:
            self.take(joined.generation_id, _partitions_of(response.assignment))

    async def leave(self) -> None:
        """Say so; raises LinkError."""
        if not self.member_id or not await self.find():
            return
        if self.epoch:
            await self.commit(self.positions)
        member = LeaveGroupRequest.Member(member_id=self.member_id)
        request = LeaveGroupRequest(group_id=self.group_id, members=[member])
        await self.ask(self.coordinator, request, LEAVE_VERSION)


def _partitions_of(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    _, told = ConsumerProtocolAssignment.decode_versioned(assignment)
    return [index for each in told.assigned_partitions for index in each.partitions]


def _shared_out(members: Sequence[str]) -> list[SyncGroupRequest.Assignment]:
    """Each partition to one of the members, in turn."""
    kind = ConsumerProtocolAssignment.AssignedPartition
    shared = []
    for place, member_id in enumerate(members):
        indexes = list(range(place, PARTITIONS, len(members)))
        assigned = [kind(topic=TOPIC, partitions=indexes)] if indexes else []
        given = ConsumerProtocolAssignment(assigned_partitions=assigned)
        shared.append(
            SyncGroupRequest.Assignment(
                member_id=member_id, assignment=given.encode_versioned(PROTOCOL_VERSION)
            )
        )
    return shared
