"""Consumers of the classic protocol in front of a shard, which may be in a consumer group."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode
from protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from protocol.messages.group_membership import LeaveGroupRequest

if TYPE_CHECKING:
    from tests.coordinator.harness import Harness, Inbox

VERSION = 3
SESSION_MS, REBALANCE_MS = 10_000, 60_000


def assignment_of(**owned: list[int]) -> bytes:
    """Return the assignment that a leader gives to a member."""
    kind = ConsumerProtocolAssignment.AssignedPartition
    assigned = [kind(topic=topic, partitions=owned[topic]) for topic in owned]
    body = ConsumerProtocolAssignment(assigned_partitions=assigned).encode(VERSION)
    return struct.pack(">h", VERSION) + body


@dataclass
class ClassicMember:
    """A consumer that joins on request, and owns its last assignment."""

    harness: Harness
    topics: list[str]
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    owned: dict[str, list[int]] = field(default_factory=dict)
    protocols: tuple[str, ...] = ("range", "sticky")

    @property
    def metadata(self) -> bytes:
        """Return the metadata of its JoinGroup request."""
        kind = ConsumerProtocolSubscription.OwnedPartition
        owned = [kind(topic=topic, partitions=self.owned[topic]) for topic in self.owned]
        subscription = ConsumerProtocolSubscription(topics=self.topics, owned_partitions=owned)
        return struct.pack(">h", VERSION) + subscription.encode(VERSION)

    def ask_to_join(self, **options: Any) -> Inbox:
        """Send a JoinGroup, and a second one if it is given an id."""
        inbox = self._join(**options)
        if not inbox.is_parked and inbox.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = inbox.response.member_id
            inbox = self._join(**options)
        return inbox

    def _join(self, **options: Any) -> Inbox:
        return self.harness.join(
            self.member_id,
            instance=self.instance_id,
            protocols=dict.fromkeys(self.protocols, self.metadata),
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
            **options,
        )

    def joined(self, inbox: Inbox) -> ErrorCode:
        """Take the answer."""
        response = inbox.response
        if not response.error_code:
            self.member_id, self.generation = response.member_id, response.generation_id
        return inbox.error

    def join(self) -> ErrorCode:
        """Join, where no other member has to be waited for, and fetch the assignment."""
        error = self.joined(self.ask_to_join())
        return error or self.sync()

    def sync(self) -> ErrorCode:
        """Ask what it owns."""
        inbox = self.harness.sync(
            self.member_id, self.generation, group_instance_id=self.instance_id
        )
        if inbox.error is ErrorCode.NONE and inbox.response.assignment:
            read = ConsumerProtocolAssignment.decode(VERSION, inbox.response.assignment, 2)
            self.owned = {each.topic: each.partitions for each in read.assigned_partitions}
        return inbox.error

    def heartbeat(self) -> ErrorCode:
        """Send a heartbeat, and join on request."""
        error = self.harness.heartbeat(self.member_id, self.generation, self.instance_id)
        return self.join() if error is ErrorCode.REBALANCE_IN_PROGRESS else error

    def leave(self) -> ErrorCode:
        """Leave for good."""
        member = LeaveGroupRequest.Member(
            member_id=self.member_id, group_instance_id=self.instance_id
        )
        [left] = self.harness.leave_members(member)
        return ErrorCode(left.error_code)

    @property
    def count(self) -> int:
        """Return the number of partitions it owns."""
        return sum(map(len, self.owned.values()))
