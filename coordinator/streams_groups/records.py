"""The records of a streams group, as Apache Kafka 4.4 writes them.

    key type 17   the group's epoch, the hash of its topics, the epoch of the topology that was
                  ready, and the assignor's configuration
             19   a member's metadata
             20   the epoch of the target assignment, and when it was computed
             21   a member's part of the target assignment
             22   a member's current assignment
             23   the topology

Subtopologies, partitions and tags are in ascending order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator.modern_groups.records import RecordClasses
from coordinator.records import OffsetsRecord
from coordinator.streams_groups.member import stored_epochs, stored_tasks
from protocol.messages.streams_group_records import (
    KeyValue,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataEndpoint,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberTaskIds,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.member import StreamsMember
    from coordinator.streams_groups.tasks import Tasks, TaskSet
    from coordinator.streams_groups.topology import Topology


_CLASSES: Final = RecordClasses(
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
)
target_epoch_record: Final = _CLASSES.target_epoch_record
member_tombstones: Final = _CLASSES.member_tombstones


def topology_record(group_id: str, topology: Topology) -> OffsetsRecord:
    """Store the topology."""
    return OffsetsRecord(StreamsGroupTopologyKey(group_id=group_id), topology.value)


def member_record(group_id: str, member: StreamsMember) -> OffsetsRecord:
    """Build the record of a member's metadata."""
    endpoint = member.endpoint
    return OffsetsRecord(
        StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        StreamsGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None
            if endpoint is None
            else StreamsGroupMemberMetadataEndpoint(host=endpoint.host, port=endpoint.port),
            client_tags=[KeyValue(key=key, value=member.tags[key]) for key in sorted(member.tags)],
        ),
    )


def epoch_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> OffsetsRecord:
    """Store the group's epoch."""
    return OffsetsRecord(
        StreamsGroupMetadataKey(group_id=group_id),
        StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[
                LastAssignmentConfig(key=key, value=assignment_configs[key])
                for key in sorted(assignment_configs)
            ],
        ),
    )


def target_record(group_id: str, member_id: str, target: Tasks) -> OffsetsRecord:
    """Store a member's part of the target assignment."""
    return OffsetsRecord(
        StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        StreamsGroupTargetAssignmentMemberValue(
            active_tasks=_stored(target.active),
            standby_tasks=_stored(target.standby),
            warmup_tasks=_stored(target.warmup),
        ),
    )


def _stored(tasks: TaskSet) -> list[StreamsGroupTargetAssignmentMemberTaskIds]:
    return [
        StreamsGroupTargetAssignmentMemberTaskIds(
            subtopology_id=each, partitions=sorted(tasks[each])
        )
        for each in sorted(tasks)
    ]


def current_record(group_id: str, member: StreamsMember) -> OffsetsRecord:
    """Build the record of a member's current assignment."""
    assigned, revoking = member.assigned, member.revoking
    return OffsetsRecord(
        StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            active_tasks=stored_epochs(assigned.active),
            standby_tasks=stored_tasks(assigned.standby),
            warmup_tasks=stored_tasks(assigned.warmup),
            active_tasks_pending_revocation=stored_epochs(revoking.active),
            standby_tasks_pending_revocation=stored_tasks(revoking.standby),
            warmup_tasks_pending_revocation=stored_tasks(revoking.warmup),
        ),
    )


def group_tombstones(group: StreamsGroup) -> list[OffsetsRecord]:
    """Forget a group, which has no members."""
    assert not group.members, "a group with members is not forgotten"
    group_id = group.group_id
    return [
        OffsetsRecord(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        OffsetsRecord(StreamsGroupMetadataKey(group_id=group_id), None),
        OffsetsRecord(StreamsGroupTopologyKey(group_id=group_id), None),
    ]
