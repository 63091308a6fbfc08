"""Streams groups as administration tools see them: StreamsGroupDescribe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.streams_groups.settings import ASSIGNOR
from coordinator.streams_groups.tasks import NO_OFFSETS
from protocol.errors import ErrorCode, shortened
from protocol.messages.streams_groups import (
    StreamsGroupDescribeAssignment,
    StreamsGroupDescribeResponse,
    StreamsGroupEndpoint,
    StreamsGroupKeyValue,
    StreamsGroupTaskIds,
    StreamsGroupTaskOffset,
    StreamsGroupTopicInfo,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.member import StreamsMember
    from coordinator.streams_groups.tasks import Offsets, TaskOffsets, Tasks
    from coordinator.streams_groups.topology import (
        ConfiguredSubtopology,
        ConfiguredTopology,
        InternalTopic,
        Subtopology,
        Topology,
    )
    from protocol.messages.streams_group_records import StreamsGroupTopologyTopicInfo

DescribedGroup = StreamsGroupDescribeResponse.Group
DescribedMember = StreamsGroupDescribeResponse.Group.Member
DescribedTopology = StreamsGroupDescribeResponse.Group.Topology
DescribedSubtopology = StreamsGroupDescribeResponse.Group.Topology.Subtopology


def not_described(group_id: str, error: ErrorCode, message: str | None) -> DescribedGroup:
    """A group that cannot be described."""
    return DescribedGroup(
        error_code=error,
        error_message=None if message is None else shortened(message),
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
    )


def described(group: StreamsGroup) -> Generator[None, None, DescribedGroup]:
    """A group and its members, in steps; the members are those at the first step."""
    topology = None
    if group.memory.configured is not None and group.memory.configured.is_ready:
        topology = _configured(group.memory.configured)
    elif group.topology is not None:
        topology = _stored(group.topology)
    answer = DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=topology,
        members=[],
        assignor_name=ASSIGNOR,
    )
    targets, offsets = group.targets, group.memory.task_offsets
    for member in list(group.members.values()):
        member_id = member.member_id
        known = offsets.get(member_id, NO_OFFSETS)
        answer.members.append(_member(member, targets.get(member_id), known))
        yield
    return answer


def _member(member: StreamsMember, target: Tasks | None, offsets: TaskOffsets) -> DescribedMember:
    endpoint = member.endpoint
    active, standby, warmup = target or ({}, {}, {})
    return DescribedMember(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else StreamsGroupEndpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            StreamsGroupKeyValue(key=key, value=value) for key, value in member.tags.items()
        ],
        task_offsets=_offsets(offsets.restored),
        task_end_offsets=_offsets(offsets.ends),
        assignment=_assignment(*member.assigned),
        target_assignment=_assignment(active, standby, warmup),
        is_classic=False,
    )


def _offsets(offsets: Offsets) -> list[StreamsGroupTaskOffset]:
    return [
        StreamsGroupTaskOffset(subtopology_id=each[0], partition=each[1], offset=offsets[each])
        for each in sorted(offsets)
    ]


def _assignment(
    active: Mapping[str, Iterable[int]],
    standby: Mapping[str, Iterable[int]],
    warmup: Mapping[str, Iterable[int]],
) -> StreamsGroupDescribeAssignment:
    return StreamsGroupDescribeAssignment(
        active_tasks=_tasks(active), standby_tasks=_tasks(standby), warmup_tasks=_tasks(warmup)
    )


def _tasks(tasks: Mapping[str, Iterable[int]]) -> list[StreamsGroupTaskIds]:
    return [
        StreamsGroupTaskIds(subtopology_id=each, partitions=sorted(tasks[each]))
        for each in sorted(tasks)
    ]


def _configured(topology: ConfiguredTopology) -> DescribedTopology:
    """A topology with all its numbers."""

    def topics(internal: Mapping[str, InternalTopic]) -> list[StreamsGroupTopicInfo]:
        return [_info(internal[name]) for name in sorted(internal)]

    def described_subtopology(name: str, each: ConfiguredSubtopology) -> DescribedSubtopology:
        return DescribedSubtopology(
            subtopology_id=name,
            source_topics=sorted(each.source_topics),
            repartition_sink_topics=sorted(each.repartition_sink_topics),
            state_changelog_topics=topics(each.state_changelog_topics),
            repartition_source_topics=topics(each.repartition_source_topics),
        )

    return DescribedTopology(
        epoch=topology.epoch,
        subtopologies=[described_subtopology(*each) for each in topology.subtopologies.items()],
    )


def _info(topic: InternalTopic) -> StreamsGroupTopicInfo:
    return StreamsGroupTopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[
            StreamsGroupKeyValue(key=key, value=value) for key, value in topic.configs.items()
        ],
    )


def _stored(topology: Topology) -> DescribedTopology:
    """Describe a topology whose topics are not ready, as sent by the application."""

    def described_subtopology(each: Subtopology) -> DescribedSubtopology:
        return DescribedSubtopology(
            subtopology_id=each.subtopology_id,
            source_topics=sorted(each.source_topics),
            repartition_sink_topics=sorted(each.repartition_sink_topics),
            state_changelog_topics=_stored_topics(each.state_changelog_topics),
            repartition_source_topics=_stored_topics(each.repartition_source_topics),
        )

    subtopologies = [topology.subtopologies[each] for each in sorted(topology.subtopologies)]
    return DescribedTopology(
        epoch=topology.epoch,
        subtopologies=[described_subtopology(each) for each in subtopologies],
    )


def _stored_topics(topics: Iterable[StreamsGroupTopologyTopicInfo]) -> list[StreamsGroupTopicInfo]:
    return [
        StreamsGroupTopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[
                StreamsGroupKeyValue(key=config.key, value=config.value)
                for config in each.topic_configs
            ],
        )
        for each in sorted(topics, key=_name_of)
    ]


def _name_of(topic: StreamsGroupTopologyTopicInfo) -> str:
    return topic.name
