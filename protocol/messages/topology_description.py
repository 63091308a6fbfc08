"""Descriptions of streams topologies, for operators (KIP-1331)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int8, int16, int32, string, struct
from protocol.schema import Request, Response, Struct


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
