"""Keys and values of `__consumer_offsets`: streams groups (KIP-1071)."""

from __future__ import annotations

from protocol.fields import array, int8, int16, int32, int64, string, struct, uint16
from protocol.schema import Coded, Struct


class StreamsGroupCurrentMemberAssignmentKey(Coded, versions="0", flexible="none", key_type=22):
    """Names the current assignment of a streams group member."""

    group_id: str = string()
    member_id: str = string()


class StreamsGroupCurrentMemberAssignmentTaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, default=(), nullable="0+", tag=0)


class StreamsGroupCurrentMemberAssignmentValue(Coded, versions="0", flexible="0+"):
    """Holds the current assignment of a streams group member."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = array(
        StreamsGroupCurrentMemberAssignmentTaskIds
    )


class StreamsGroupMemberMetadataKey(Coded, versions="0", flexible="none", key_type=19):
    """Names the metadata of a streams group member."""

    group_id: str = string()
    member_id: str = string()


class StreamsGroupMemberMetadataEndpoint(Struct):
    """Address of a member for interactive queries."""

    host: str = string()
    port: int = uint16()


class KeyValue(Struct):
    """A tag that a member carries, for assignment by rack."""

    key: str = string()
    value: str = string()


class StreamsGroupMemberMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the metadata of a streams group member."""

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: StreamsGroupMemberMetadataEndpoint | None = struct(
        StreamsGroupMemberMetadataEndpoint, default=None, nullable="0+"
    )
    client_tags: list[KeyValue] = array(KeyValue)


class StreamsGroupMetadataKey(Coded, versions="0", flexible="none", key_type=17):
    """Names the epoch of a streams group."""

    group_id: str = string()


class LastAssignmentConfig(Struct):
    """A setting that the last assignment was made with."""

    key: str = string()
    value: str = string()


class StreamsGroupMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the epoch of a streams group."""

    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(
        LastAssignmentConfig, default=(), nullable="0+", tag=1
    )
    stored_description_topology_epoch: int = int32(default=-1, tag=2)
    """Topology epoch of the stored description (KIP-1331); -1 none, -2 uncertain."""
    failed_description_topology_epoch: int = int32(default=-1, tag=3)
    """Topology epoch whose description was refused permanently; -1 none."""


class StreamsGroupTargetAssignmentMemberKey(Coded, versions="0", flexible="none", key_type=21):
    """Names the target assignment of a streams group member."""

    group_id: str = string()
    member_id: str = string()


class StreamsGroupTargetAssignmentMemberTaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class StreamsGroupTargetAssignmentMemberValue(Coded, versions="0", flexible="0+"):
    """Holds the target assignment of a streams group member."""

    active_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = array(
        StreamsGroupTargetAssignmentMemberTaskIds
    )


class StreamsGroupTargetAssignmentMetadataKey(Coded, versions="0", flexible="none", key_type=20):
    """Names the epoch of the target assignment of a streams group."""

    group_id: str = string()


class StreamsGroupTargetAssignmentMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the epoch of the target assignment of a streams group."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(default=0, tag=0)


class StreamsGroupTopologyKey(Coded, versions="0", flexible="none", key_type=23):
    """Names the topology of a streams group."""

    group_id: str = string()


class StreamsGroupTopologyTopicConfig(Struct):
    """A configuration value for an internal topic."""

    key: str = string()
    value: str = string()


class StreamsGroupTopologyTopicInfo(Struct):
    """An internal topic that the topology needs."""

    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[StreamsGroupTopologyTopicConfig] = array(StreamsGroupTopologyTopicConfig)


class StreamsGroupTopologyValue(Coded, versions="0", flexible="0+"):
    """Holds the topology of a streams group."""

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
        state_changelog_topics: list[StreamsGroupTopologyTopicInfo] = array(
            StreamsGroupTopologyTopicInfo
        )
        repartition_sink_topics: list[str] = array(string)
        repartition_source_topics: list[StreamsGroupTopologyTopicInfo] = array(
            StreamsGroupTopologyTopicInfo
        )
        copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)

    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)
