"""Partitions that interactive queries find at each member: those of the tasks that it owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.messages.streams_groups import StreamsGroupEndpoint, StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.member import StreamsMember
    from coordinator.streams_groups.topology import ConfiguredTopology
    from coordinator.topics import Topics

Told = StreamsGroupHeartbeatResponse.EndpointToPartitions


def partitions_by_endpoint(
    group: StreamsGroup,
    members: Iterable[StreamsMember],
    topology: ConfiguredTopology,
    topics: Topics,
) -> list[Told]:
    """List the partitions of each of `members`, those after the heartbeat, that has an endpoint."""
    found = []
    for member in members:
        told = _told(group, member, topology, topics)
        if told is not None:
            found.append(told)
    return found


def _told(
    group: StreamsGroup, member: StreamsMember, topology: ConfiguredTopology, topics: Topics
) -> Told | None:
    if member.endpoint is None:
        return None
    known = group.memory.endpoints.get(member.member_id)
    if known is None:
        active, standby = member.assigned.active, member.assigned.standby
        known = group.memory.endpoints[member.member_id] = Told(
            user_endpoint=StreamsGroupEndpoint(
                host=member.endpoint.host, port=member.endpoint.port
            ),
            active_partitions=_partitions(active, topology, topics),
            standby_partitions=_partitions(standby, topology, topics),
        )
    return known


def _partitions(
    tasks: Mapping[str, Iterable[int]], topology: ConfiguredTopology, topics: Topics
) -> list[Told.TopicPartition]:
    """The partitions that tasks read; a topic with few partitions is read by the first ones."""
    found = []
    for subtopology_id in sorted(tasks):
        subtopology = topology.subtopologies.get(subtopology_id)
        if subtopology is None:
            continue
        partitions = sorted(tasks[subtopology_id])
        sources = {*subtopology.source_topics, *subtopology.repartition_source_topics}
        for topic in sorted(sources):
            view = topics.find(topic)
            if view is not None:
                shown = partitions[: view.partition_count]
                found.append(Told.TopicPartition(topic=topic, partitions=shown))
    return found
