"""Streams groups: membership and description (KIP-1071)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string, struct, uint16
from protocol.schema import Request, Response, Struct


class StreamsGroupKeyValue(Struct):
    """A configuration of an internal topic, or a tag of a member."""

    key: str = string()
    value: str = string()


class StreamsGroupTopicInfo(Struct):
    """An internal topic that a topology needs."""

    name: str = string()
    partitions: int = int32()
    """0 if the coordinator shall decide, as for all changelogs."""
    replication_factor: int = int16()
    """0 for the default."""
    topic_configs: list[StreamsGroupKeyValue] = array(StreamsGroupKeyValue)


class StreamsGroupEndpoint(Struct):
    """Address of a member for interactive queries."""

    host: str = string()
    port: int = uint16()


class StreamsGroupTaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class StreamsGroupTaskOffset(Struct):
    """Restored offsets of a task's changelogs, or their end offsets."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


class TopologyDescriptionNode(Struct):
    """A source, a processor or a sink."""

    name: str = string()
    node_type: int = int8()
    """1 source, 2 processor, 3 sink."""
    source_topics: list[str] = array(string)
    """Of a source; empty if topics are found as they come."""
    sink_topic: str | None = string(default=None, nullable="0+")
    stores: list[str] = array(string)
    successors: list[str] = array(string)


class TopologyDescription(Struct):
    """All nodes of a topology."""

    class Subtopology(Struct):
        """A part of the topology that is scheduled as one."""

        subtopology_id: str = string()
        nodes: list[TopologyDescriptionNode] = array(TopologyDescriptionNode)

    class GlobalStore(Struct):
        """A state store that each instance has in full."""

        source: TopologyDescriptionNode = struct(TopologyDescriptionNode)
        processor: TopologyDescriptionNode = struct(TopologyDescriptionNode)

    subtopologies: list[Subtopology] = array(Subtopology)
    global_stores: list[GlobalStore] = array(GlobalStore)


class StreamsGroupHeartbeatRequest(
    Request, key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    """Join, stay in or leave a streams group: one request for all."""

    class Topology(Struct):
        """Topology of the application."""

        class Subtopology(Struct):
            """A part of the topology that is scheduled as one."""

            class CopartitionGroup(Struct):
                """Topics that must be partitioned alike."""

                source_topics: list[int] = array(int16)
                """Places in the lists of the subtopology, from 0; so are the others."""
                source_topic_regex: list[int] = array(int16)
                repartition_source_topics: list[int] = array(int16)

            subtopology_id: str = string()
            source_topics: list[str] = array(string)
            source_topic_regex: list[str] = array(string)
            state_changelog_topics: list[StreamsGroupTopicInfo] = array(StreamsGroupTopicInfo)
            repartition_sink_topics: list[str] = array(string)
            repartition_source_topics: list[StreamsGroupTopicInfo] = array(StreamsGroupTopicInfo)
            copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)

        epoch: int = int32()
        subtopologies: list[Subtopology] = array(Subtopology)

    group_id: str = string()
    member_id: str = string()
    """Made by the client."""
    member_epoch: int = int32()
    """0 joins, -1 leaves; else the epoch it is in."""
    endpoint_information_epoch: int = int32()
    """The latest epoch it received."""
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    """Time it may take to give up tasks; -1 if unchanged."""
    topology: Topology | None = struct(Topology, default=None, nullable="0+")
    """Set when it joins, else null."""
    active_tasks: list[StreamsGroupTaskIds] | None = array(
        StreamsGroupTaskIds, default=None, nullable="0+"
    )
    """Owned active tasks; null if unchanged, as the next two."""
    standby_tasks: list[StreamsGroupTaskIds] | None = array(
        StreamsGroupTaskIds, default=None, nullable="0+"
    )
    warmup_tasks: list[StreamsGroupTaskIds] | None = array(
        StreamsGroupTaskIds, default=None, nullable="0+"
    )
    process_id: str | None = string(default=None, nullable="0+")
    """Names the instance of the application, which may have several members; null if unchanged."""
    user_endpoint: StreamsGroupEndpoint | None = struct(
        StreamsGroupEndpoint, default=None, nullable="0+"
    )
    client_tags: list[StreamsGroupKeyValue] | None = array(
        StreamsGroupKeyValue, default=None, nullable="0+"
    )
    task_offsets: list[StreamsGroupTaskOffset] | None = array(
        StreamsGroupTaskOffset, default=None, nullable="0+"
    )
    task_end_offsets: list[StreamsGroupTaskOffset] | None = array(
        StreamsGroupTaskOffset, default=None, nullable="0+"
    )
    shutdown_application: bool = boolean(default=False)
    """True to shut down all members."""


class StreamsGroupHeartbeatResponse(
    Response, request=StreamsGroupHeartbeatRequest, versions="0-1", flexible="0+"
):
    """Answer to StreamsGroupHeartbeatRequest."""

    class Status(Struct):
        """Something that the application should know of its group."""

        status_code: int = int8()
        status_detail: str = string()

    class EndpointToPartitions(Struct):
        """Partitions that interactive queries find at a member."""

        class TopicPartition(Struct):
            """Partitions of one topic."""

            topic: str = string()
            partitions: list[int] = array(int32)

        user_endpoint: StreamsGroupEndpoint = struct(StreamsGroupEndpoint)
        active_partitions: list[TopicPartition] = array(TopicPartition)
        standby_partitions: list[TopicPartition] = array(TopicPartition)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag_legacy: int = int32("0", default=0)
    task_offset_interval_ms: int = int32()
    """Interval at which members report the offsets of their tasks."""
    acceptable_recovery_lag: int = int64("1+", default=-1)
    """Largest lag at which a warm-up task counts as restored."""
    status: list[Status] | None = array(Status, nullable="0+")
    active_tasks: list[StreamsGroupTaskIds] | None = array(
        StreamsGroupTaskIds, default=None, nullable="0+"
    )
    """Null if unchanged; so are the next two."""
    standby_tasks: list[StreamsGroupTaskIds] | None = array(
        StreamsGroupTaskIds, default=None, nullable="0+"
    )
    warmup_tasks: list[StreamsGroupTaskIds] | None = array(
        StreamsGroupTaskIds, default=None, nullable="0+"
    )
    topology_description_required: bool = boolean("1+", default=False)
    """True if the broker wants the description of the topology (KIP-1331)."""
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, default=None, nullable="0+"
    )
    """Null if unchanged."""


class StreamsGroupDescribeRequest(
    Request, key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+"
):
    """Describe streams groups."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()
    include_topology_description: bool = boolean("1+", default=False)


class StreamsGroupDescribeAssignment(Struct):
    """Current or target assignment of a member."""

    active_tasks: list[StreamsGroupTaskIds] = array(StreamsGroupTaskIds)
    standby_tasks: list[StreamsGroupTaskIds] = array(StreamsGroupTaskIds)
    warmup_tasks: list[StreamsGroupTaskIds] = array(StreamsGroupTaskIds)


class StreamsGroupDescribeResponse(
    Response, request=StreamsGroupDescribeRequest, versions="0-1", flexible="0+"
):
    """Answer to StreamsGroupDescribeRequest."""

    class Group(Struct):
        """A streams group."""

        class Topology(Struct):
            """Topology of the application."""

            class Subtopology(Struct):
                """A part of the topology that is scheduled as one."""

                subtopology_id: str = string()
                source_topics: list[str] = array(string)
                repartition_sink_topics: list[str] = array(string)
                state_changelog_topics: list[StreamsGroupTopicInfo] = array(StreamsGroupTopicInfo)
                repartition_source_topics: list[StreamsGroupTopicInfo] = array(
                    StreamsGroupTopicInfo
                )

            epoch: int = int32()
            subtopologies: list[Subtopology] | None = array(
                Subtopology, default=None, nullable="0+"
            )

        class Member(Struct):
            """A member, its current and its target assignment."""

            member_id: str = string()
            member_epoch: int = int32()
            instance_id: str | None = string(default=None, nullable="0+")
            rack_id: str | None = string(default=None, nullable="0+")
            client_id: str = string()
            client_host: str = string()
            topology_epoch: int = int32()
            process_id: str = string()
            user_endpoint: StreamsGroupEndpoint | None = struct(
                StreamsGroupEndpoint, default=None, nullable="0+"
            )
            client_tags: list[StreamsGroupKeyValue] = array(StreamsGroupKeyValue)
            task_offsets: list[StreamsGroupTaskOffset] = array(StreamsGroupTaskOffset)
            task_end_offsets: list[StreamsGroupTaskOffset] = array(StreamsGroupTaskOffset)
            assignment: StreamsGroupDescribeAssignment = struct(StreamsGroupDescribeAssignment)
            target_assignment: StreamsGroupDescribeAssignment = struct(
                StreamsGroupDescribeAssignment
            )
            is_classic: bool = boolean()

        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        topology: Topology | None = struct(Topology, default=None, nullable="0+")
        members: list[Member] = array(Member)
        authorized_operations: int = int32(default=-2147483648)
        topology_description: TopologyDescription | None = struct(
            TopologyDescription, "1+", default=None, nullable="1+"
        )
        topology_description_status: int = int8("1+", default=0)
        """0 not requested, 1 not stored, 2 could not be fetched, 3 available (KIP-1331)."""
        assignor_name: str | None = string("1+", default=None, nullable="1+")
        """The assignor of the next assignment (KIP-1357)."""

    throttle_time_ms: int = int32(default=0)
    groups: list[Group] = array(Group)


class StreamsGroupTopologyDescriptionUpdateRequest(
    Request,
    key=ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    versions="0",
    flexible="0+",
):
    """Store the description of a group's topology."""

    group_id: str = string()
    member_id: str = string()
    topology_epoch: int = int32()
    topology_description: TopologyDescription = struct(TopologyDescription)


class StreamsGroupTopologyDescriptionUpdateResponse(
    Response, request=StreamsGroupTopologyDescriptionUpdateRequest, versions="0", flexible="0+"
):
    """Answer to StreamsGroupTopologyDescriptionUpdateRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
