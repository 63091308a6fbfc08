"""Downgrade of a consumer group to a classic one, once all members speak the classic protocol.

The classic group is stable at the consumer group's epoch, with the target assignment as that of its
generation. Usually it is rebalanced at once: a member has just left, and its partitions have no
owner. If the coordinator dies before that, the next one has to do it after loading the log
(`LogTrace`). Until then members keep their current partitions, target or not, so the record holds
those: should the group become a consumer group again meanwhile, no other member may get them.
"""

from __future__ import annotations

import logging
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from coordinator.consumer_groups.classic_members.embedded_protocol import (
    encode_assignment,
    version_of,
)
from coordinator.consumer_groups.records import group_tombstones
from coordinator.groups.group import ClassicGroup
from coordinator.groups.member import Member
from coordinator.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from coordinator.records import generation_record
from protocol.errors import ApiError, ErrorCode
from protocol.messages.consumer_group_records import ConsumerGroupMemberMetadataKey
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from uuid import UUID

    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.member import ConsumerMember
    from coordinator.consumer_groups.settings import ConsumerGroupSettings
    from coordinator.consumer_groups.shard_parts import ShardParts
    from coordinator.groups.member import Protocols
    from coordinator.modern_groups.assignments import Target
    from coordinator.records import OffsetsRecord
    from protocol.messages.consumer_offsets_records import GroupMetadataValue

logger = logging.getLogger(__name__)


class LogTrace:
    """Finds downgrades in a log: those of Apache Kafka too, which does not look for them.

    The members' tombstones come first. Right behind them is the record of the classic group, which
    names members of the same ids.
    """

    __slots__ = ("_group_id", "_member_ids")

    def __init__(self) -> None:
        self._group_id = ""
        self._member_ids: set[str] = set()

    def follow(self, record: OffsetsRecord) -> None:
        """Note a record of a group of one of the newer kinds."""
        key = record.key
        if record.value is not None:
            self.break_off()
        elif isinstance(key, ConsumerGroupMemberMetadataKey):
            if key.group_id != self._group_id:
                self.break_off()
                self._group_id = key.group_id
            self._member_ids.add(key.member_id)

    def break_off(self) -> None:
        """Note another record."""
        if self._member_ids:
            self._member_ids = set()

    def leads_to(self, group_id: str, value: GroupMetadataValue) -> bool:
        """Return whether the next record, that of a classic group, completes a downgrade."""
        found = group_id == self._group_id and any(
            member.member_id in self._member_ids for member in value.members
        )
        self.break_off()
        return found


class Downgraded(NamedTuple):
    """A group that has become a classic one, with the state that is not in its record."""

    group_id: str
    protocols: Mapping[str, Protocols]
    """All that each member supports, by member id."""
    must_rebalance: bool


def is_due(
    group: ConsumerGroup, leaving: Collection[ConsumerMember], settings: ConsumerGroupSettings
) -> bool:
    """Return whether the group becomes a classic one once these members have left."""
    left = len(group.members) - len(leaving)
    classic = group.classic_count - sum(member.classic is not None for member in leaving)
    return 0 < left == classic and _is_possible(group, left, settings)


def is_due_for(
    group: ConsumerGroup, replaced: ConsumerMember | None, settings: ConsumerGroupSettings
) -> bool:
    """The same when a classic member takes the place of a static one of the other protocol."""
    if replaced is None or replaced.classic is not None:
        return False
    size = len(group.members)
    return group.classic_count == size - 1 and _is_possible(group, size, settings)


def _is_possible(group: ConsumerGroup, size: int, settings: ConsumerGroupSettings) -> bool:
    why = None
    if not settings.migration.can_downgrade:
        why = "the online downgrade is disabled"
    elif size > settings.classic_max_size:
        why = "it has more members than group.max.size"
    if why is not None:
        logger.info("group %s: stays a consumer group, as %s", group.group_id, why)
    return why is None


class Downgrade(NamedTuple):
    """Members that leave the group as it becomes classic, and one that joins."""

    leaving: Collection[ConsumerMember]
    joining: ConsumerMember | None
    """It replaces the member of its instance."""
    must_rebalance: bool


def downgrade_records(
    group: ConsumerGroup, downgrade: Downgrade, parts: ShardParts, now_ms: int
) -> tuple[list[OffsetsRecord], dict[str, Protocols]]:
    """Return the records, and the protocols that each member supports.

    Raises ApiError GROUP_ID_NOT_FOUND if the members' subscriptions cannot be read.
    """
    leaving, joining, must_rebalance = downgrade
    replaced = None if joining is None else group.static_member(joining.instance_id or "")
    gone = {member.member_id for member in leaving}
    members = [
        member
        for member in group.members.values()
        if member.member_id not in gone and member is not replaced
    ]
    members += [] if joining is None else [joining]
    classic = _classic_group(group, members)
    renamed = {}
    if replaced is not None and joining is not None:
        renamed[replaced.member_id] = joining.member_id
    try:
        assignments = {
            member.member_id: encode_assignment(
                _owned(member) if must_rebalance else group.target_of(member),
                parts.topics,
                version_of(classic.members[member.member_id].metadata_for(classic.protocol or "")),
            )
            for member in members
        }
    except DecodeError as error:
        reason = f"Cannot downgrade the classic group {group.group_id}: {error}."
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, reason) from error
    records = group_tombstones(group, renamed)
    records.append(generation_record(classic, assignments, now_ms))
    return records, {member.member_id: member.protocols for member in classic.members.values()}


def _owned(member: ConsumerMember) -> Target:
    """Return the partitions that a member may be consuming."""
    owned: dict[UUID, frozenset[int]] = {}
    for topic_id, partitions in chain(member.assigned.items(), member.revoking.items()):
        owned[topic_id] = owned.get(topic_id, frozenset()).union(partitions)
    return owned


def _classic_group(group: ConsumerGroup, members: Collection[ConsumerMember]) -> ClassicGroup:
    """The group as its record will describe it."""
    classic = ClassicGroup(group.group_id)
    classic.generation = group.epoch
    for member in members:
        assert member.classic is not None, "all members speak the classic protocol"
        converted = Member(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.classic.session_timeout_ms,
            protocols=tuple(
                (each.name, each.metadata) for each in member.classic.supported_protocols
            ),
        )
        classic.add_member(converted, CONSUMER_PROTOCOL_TYPE)
    classic.protocol = classic.select_protocol()
    return classic
