"""Requests of consumers' groups, by who is no member of any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from protocol.messages.groups import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetDeleteRequest, OffsetFetchRequest

if TYPE_CHECKING:
    from tests.support.sent_requests.about import About, Maker

NOBODY = "nobody"
BY_ID_SINCE = 10
GROUPS_SINCE = 8
BATCH_SINCE = 4
GROUP, TRANSACTION = 0, 1


def offset_commit(about: About, version: int) -> OffsetCommitRequest:
    """A position in each topic, without being a member."""
    kind = OffsetCommitRequest.Topic
    partitions = [kind.Partition(partition_index=0, committed_offset=1, committed_metadata="")]
    return OffsetCommitRequest(
        group_id=about.group,
        topics=[
            kind(topic_id=about.id_of(name), partitions=partitions)
            if version >= BY_ID_SINCE
            else kind(name=name, partitions=partitions)
            for name in about.topics
        ],
    )


def offset_fetch(about: About, version: int) -> OffsetFetchRequest:
    """The positions in each topic; in the other form all there are."""
    kind = OffsetFetchRequest.Topic
    topics = None
    if not about.is_form(1) or version < 2:
        topics = [kind(name=name, partition_indexes=[0]) for name in about.topics]
    if version < GROUPS_SINCE:
        return OffsetFetchRequest(group_id=about.group, topics=topics)
    wanted = None
    if topics is not None:
        within = OffsetFetchRequest.Group.Topic
        wanted = [
            within(topic_id=about.id_of(name), partition_indexes=[0])
            if version >= BY_ID_SINCE
            else within(name=name, partition_indexes=[0])
            for name in about.topics
        ]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequest.Group(group_id=about.group, topics=wanted)]
    )


def offset_delete(about: About, _: int) -> OffsetDeleteRequest:
    """The position in each topic."""
    kind = OffsetDeleteRequest.Topic
    partitions = [kind.Partition(partition_index=0)]
    return OffsetDeleteRequest(
        group_id=about.group,
        topics=[kind(name=name, partitions=partitions) for name in about.topics],
    )


def find_coordinator(about: About, version: int) -> FindCoordinatorRequest:
    """Look up the coordinator of the group, or of the transactional id."""
    key, key_type = about.group, GROUP
    if version and about.is_form(1):
        key, key_type = about.transactional_id, TRANSACTION
    if version < BATCH_SINCE:
        return FindCoordinatorRequest(key=key, key_type=key_type)
    return FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)


def join_group(about: About, _: int) -> JoinGroupRequest:
    """Join as a member unknown to the group."""
    return JoinGroupRequest(
        group_id=about.group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=NOBODY,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
    )


def sync_group(about: About, version: int) -> SyncGroupRequest:
    """Sync as a member unknown to the group."""
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    return SyncGroupRequest(
        group_id=about.group, generation_id=1, member_id=NOBODY, assignments=[], **protocol
    )


def heartbeat(about: About, _: int) -> HeartbeatRequest:
    """Send the heartbeat of a member unknown to the group."""
    return HeartbeatRequest(group_id=about.group, generation_id=1, member_id=NOBODY)


def leave_group(about: About, version: int) -> LeaveGroupRequest:
    """Leave as a member unknown to the group."""
    if version < 3:
        return LeaveGroupRequest(group_id=about.group, member_id=NOBODY)
    return LeaveGroupRequest(
        group_id=about.group, members=[LeaveGroupRequest.Member(member_id=NOBODY)]
    )


def describe_groups(about: About, _: int) -> DescribeGroupsRequest:
    """The group, and what may be done to it."""
    return DescribeGroupsRequest(
        groups=[about.group], include_authorized_operations=about.is_form(1)
    )


def delete_groups(about: About, _: int) -> DeleteGroupsRequest:
    """The group."""
    return DeleteGroupsRequest(groups_names=[about.group])


def list_groups(_: About, __: int) -> ListGroupsRequest:
    """List all groups."""
    return ListGroupsRequest()


MAKERS: dict[ApiKey, Maker] = {
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.OFFSET_DELETE: offset_delete,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.JOIN_GROUP: join_group,
    ApiKey.SYNC_GROUP: sync_group,
    ApiKey.HEARTBEAT: heartbeat,
    ApiKey.LEAVE_GROUP: leave_group,
    ApiKey.DESCRIBE_GROUPS: describe_groups,
    ApiKey.DELETE_GROUPS: delete_groups,
    ApiKey.LIST_GROUPS: list_groups,
}
