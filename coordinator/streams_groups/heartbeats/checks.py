"""Checks of a StreamsGroupHeartbeat, before and after its member is looked up.

Messages are those of Apache Kafka, as clients show them to their users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator.modern_groups.checks import check_not_blank, fenced_member, refuse_request
from coordinator.modern_groups.epochs import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from coordinator.streams_groups.partition_counts import invalid_topology
from protocol.wire import MAX_STRING_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.streams_groups.member import StreamsMember
    from coordinator.streams_groups.tasks import SaidTasks
    from coordinator.streams_groups.topology import ConfiguredSubtopology
    from protocol.messages.streams_groups import StreamsGroupHeartbeatRequest

MAX_TAGS: Final = 100
"""Tags of one member; Kafka Streams takes five."""


def check_request(request: StreamsGroupHeartbeatRequest, max_tasks: int) -> None:
    """Raise ApiError for a request that is invalid regardless of the group."""
    _check_supported(request)
    _check_lengths(request, max_tasks)
    check_not_blank(request.member_id, "MemberId can't be empty.")
    check_not_blank(request.group_id, "GroupId can't be empty.")
    check_not_blank(request.instance_id, "InstanceId can't be empty.")
    check_not_blank(request.rack_id, "RackId can't be empty.")
    epoch = request.member_epoch
    if epoch == JOINING_EPOCH:
        _check_joining(request)
    elif epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        refuse_request("InstanceId can't be null.")
    elif epoch < STATIC_LEAVING_EPOCH:
        refuse_request(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(tasks is not None for tasks in kinds) and any(tasks is None for tasks in kinds):
        refuse_request("If one task-type is non-null, all must be non-null.")
    if epoch != JOINING_EPOCH and request.topology is not None:
        refuse_request("Topology can only be provided when (re-)joining.")
    if len(request.member_id.encode()) > MAX_STRING_BYTES:
        refuse_request("MemberId is too long.")
    if len((request.instance_id or "").encode()) > MAX_STRING_BYTES:
        refuse_request("InstanceId is too long.")


def check_size(topology: StreamsGroupHeartbeatRequest.Topology, limit: int) -> None:
    """Raise STREAMS_INVALID_TOPOLOGY for a topology of too many parts, before it is looked at."""
    size = len(topology.subtopologies)
    for each in topology.subtopologies:
        if size > limit:
            break
        internal = (*each.state_changelog_topics, *each.repartition_source_topics)
        size += len(internal) + len(each.source_topics) + len(each.repartition_sink_topics)
        size += sum(len(topic.topic_configs) for topic in internal)
        size += sum(
            1 + len(group.source_topics) + len(group.repartition_source_topics)
            for group in each.copartition_groups
        )
    if size > limit:
        raise invalid_topology(
            f"The topology has more than {limit} subtopologies, topics and configurations."
        )


def _check_lengths(request: StreamsGroupHeartbeatRequest, max_tasks: int) -> None:
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        count = len(tasks or ())
        if count <= max_tasks:
            count = sum(len(each.partitions) for each in tasks or ())
        if count > max_tasks:
            refuse_request(f"A member cannot own more than {max_tasks} tasks.")
    for offsets in (request.task_offsets, request.task_end_offsets):
        if len(offsets or ()) > max_tasks:
            refuse_request(f"A member cannot report offsets of more than {max_tasks} tasks.")
    if len(request.client_tags or ()) > MAX_TAGS:
        refuse_request(f"A member cannot have more than {MAX_TAGS} tags.")


def _check_supported(request: StreamsGroupHeartbeatRequest) -> None:
    topology = request.topology
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        refuse_request("Regular expressions for source topics are not supported yet.")


def _check_joining(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        refuse_request("RebalanceTimeoutMs must be provided in first request.")
    if request.active_tasks:
        refuse_request("ActiveTasks must be empty when (re-)joining.")
    if request.standby_tasks:
        refuse_request("StandbyTasks must be empty when (re-)joining.")
    if request.warmup_tasks:
        refuse_request("WarmupTasks must be empty when (re-)joining.")
    if request.topology is None:
        refuse_request("Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise invalid_topology(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it "
                    f"is set to {topic.partitions}."
                )


def check_epoch(member: StreamsMember, epoch: int, said: SaidTasks) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the request has the member's epoch.

    One epoch behind is right if the answer that brought the next one was lost: then it owns
    nothing that it should not.
    """
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return
    is_behind = epoch == member.previous_member_epoch < member.member_epoch
    if is_behind and member.assigned.contain(said):
        return
    raise fenced_member("streams", epoch, member.member_epoch)


def check_tasks(subtopologies: Mapping[str, ConfiguredSubtopology], said: SaidTasks) -> None:
    """Raise INVALID_REQUEST if the member reports a task that does not exist."""
    for tasks in said:
        for each in tasks or ():
            subtopology = subtopologies.get(each.subtopology_id)
            if subtopology is None:
                refuse_request(f"Subtopology {each.subtopology_id} does not exist in the topology.")
            _check_partitions(each.subtopology_id, each.partitions, subtopology.task_count)


def _check_partitions(subtopology_id: str, partitions: Iterable[int], count: int) -> None:
    for partition in partitions:
        if not 0 <= partition < count:
            refuse_request(
                f"Task {partition} for subtopology {subtopology_id} is invalid. Number of tasks "
                f"for this subtopology: {count}"
            )
