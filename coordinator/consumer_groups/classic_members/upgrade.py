"""Upgrade of a classic group with members to a consumer group: conditions and records.

Members keep their assignments. Their epoch is the generation, and they are stable in it; the
joining member raises the group epoch, so that each of them soon has to join again.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from coordinator.consumer_groups.classic_members.embedded_protocol import (
    by_topic_id,
    read_assignment,
    read_subscription,
)
from coordinator.consumer_groups.group import ConsumerGroup
from coordinator.consumer_groups.groups import REPLAY
from coordinator.consumer_groups.member import ConsumerMember
from coordinator.consumer_groups.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from coordinator.effects import Effects
from coordinator.groups.responses import join_error, sync_error
from coordinator.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from coordinator.modern_groups.epochs import NEVER_ASSIGNED_MS
from coordinator.modern_groups.group_table import GroupTable
from coordinator.records import CONSUMER_GROUP_KEYS, group_tombstone
from protocol.errors import ApiError, ErrorCode
from protocol.messages.consumer_group_records import ConsumerGroupMemberMetadataValue
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from uuid import UUID

    from coordinator.consumer_groups.settings import ConsumerGroupSettings
    from coordinator.consumer_groups.shard_parts import ShardParts
    from coordinator.groups.group import ClassicGroup
    from coordinator.groups.member import Member, Protocols
    from coordinator.records import OffsetsRecord
    from coordinator.topics import Topics

logger = logging.getLogger(__name__)

ClassicMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata


def upgrade(classic: ClassicGroup, parts: ShardParts, effects: Effects) -> ConsumerGroup:
    """Return the consumer group that the records make of a classic one.

    Requests parked in the classic group fail with REBALANCE_IN_PROGRESS. Raises ApiError
    GROUP_ID_NOT_FOUND.
    """
    check_upgrade(classic, parts.settings)
    records = upgrade_records(classic, parts)
    effects.records += records
    for member in classic.members.values():
        if member.joining is not None:
            refused = join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            effects.answer(member.joining, refused)
        if member.syncing is not None:
            effects.answer(member.syncing, sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
    effects.on_append_failed = partial(_stay_classic, classic)
    made = GroupTable(ConsumerGroup, REPLAY, _nobody_hears, _nobody_hears)
    for record in records:
        if isinstance(record.key, CONSUMER_GROUP_KEYS):
            made.replay(record.key, record.value)
    group = made.find(classic.group_id)
    assert group is not None, "there is a record of its epoch"
    logger.info("group %s: becomes a consumer group", classic.group_id)
    return group


def _stay_classic(group: ClassicGroup, _: ErrorCode, __: int) -> Effects:
    """Clear the parked requests of a group that could not be stored: all have been answered."""
    for member in group.members.values():
        group.awaiting_join -= member.joining is not None
        member.joining = member.syncing = None
    return Effects()


def _nobody_hears(_: object) -> None:
    """The group is not one of the shard's yet."""


def check_upgrade(group: ClassicGroup, settings: ConsumerGroupSettings) -> None:
    """Raise ApiError GROUP_ID_NOT_FOUND if the group has to stay a classic one."""
    if not settings.migration.can_upgrade:
        raise _refusal(group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _refusal(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > settings.max_size:
        raise _refusal(group, "the group size exceeds the consumer group maximum size")


def upgrade_records(group: ClassicGroup, parts: ShardParts) -> list[OffsetsRecord]:
    """The group as a consumer group. Raises ApiError GROUP_ID_NOT_FOUND."""
    protocol = group.protocol or (group.select_protocol() if group.members else "")
    try:
        taken: set[tuple[UUID, int]] = set()
        members = [
            _converted(member, protocol, group.generation, _Owned(parts.topics, taken))
            for member in group.members.values()
        ]
    except DecodeError as error:
        raise _refusal(group, "the embedded consumer protocol is malformed") from error
    except _CustomAssignorError as error:
        raise _refusal(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch "
            "to a default assignor before re-attempting the upgrade",
        ) from error
    group_id, epoch = group.group_id, group.generation
    topics = frozenset[str]().union(*(member.topics for member in members))
    return [
        group_tombstone(group_id),
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, epoch, parts.hashes.of_group(topics)),
        *(target_record(group_id, member.member_id, _target(member)) for member in members),
        target_epoch_record(group_id, epoch, NEVER_ASSIGNED_MS),
        *(current_record(group_id, member) for member in members),
    ]


def classic_metadata(session_timeout_ms: int, protocols: Protocols) -> ClassicMetadata:
    """Build the stored metadata of a classic member."""
    return ClassicMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[
            ClassicMetadata.SupportedProtocol(name=name, metadata=metadata)
            for name, metadata in protocols
        ],
    )


class _CustomAssignorError(Exception):
    """An assignment carries data that only its assignor understands."""


class _Owned(NamedTuple):
    """Partitions owned by classic members, as assigned by the leader, which may be wrong."""

    topics: Topics
    taken: set[tuple[UUID, int]]
    """Partitions of earlier members, which later ones cannot keep."""

    def of(self, member: Member) -> dict[UUID, list[int]]:
        """Return the partitions that a member owns. Raises DecodeError and _CustomAssignorError."""
        if not member.assignment:
            return {}
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _CustomAssignorError
        owned: dict[UUID, list[int]] = {}
        for topic_id, indexes in by_topic_id(assignment.assigned_partitions, self.topics).items():
            for index in indexes:
                if (topic_id, index) not in self.taken:
                    self.taken.add((topic_id, index))
                    owned.setdefault(topic_id, []).append(index)
        return owned


def _converted(member: Member, protocol: str, generation: int, owned_by: _Owned) -> ConsumerMember:
    subscription = read_subscription(member.metadata_for(protocol))
    owned = owned_by.of(member)
    return ConsumerMember(
        member_id=member.member_id,
        member_epoch=generation,
        previous_member_epoch=generation,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        assigned={topic: dict.fromkeys(owned[topic], generation) for topic in owned},
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
    )


def _target(member: ConsumerMember) -> dict[UUID, frozenset[int]]:
    return {topic: frozenset(member.assigned[topic]) for topic in member.assigned}


def _refusal(group: ClassicGroup, why: str) -> ApiError:
    reason = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, reason)
