"""Metadata: brokers, topics, leaders.

Versions 0 to 13. Null asks for all topics and an empty list for none, but in v0 an empty list asks
for all. Topics are named by id from v12; from v4 a request may forbid automatic creation.

A partition without a leader carries LEADER_NOT_AVAILABLE and leader -1, and its leader epoch if
that is known. So does one whose leader lacks the listener that was asked; from v6 as
LISTENER_NOT_FOUND.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from broker import authorized_operations
from broker.encoded_response import EncodedResponse
from broker.routing import handles
from controller.topic_names import INTERNAL_TOPICS, name_problem
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID

    from broker.context import Context
    from broker.metadata_cache import MetadataCache, TopicMetadata
    from protocol.messages.update_metadata import UpdateMetadataPartitionState

Topic = MetadataResponse.Topic
Partition = MetadataResponse.Topic.Partition

FIRST_VERSION_WITH_LISTENER_ERROR = 6
FIRST_VERSION_BY_ID = 12
REMEMBERED_ANSWERS = 32
PARTITIONS_WORTH_KEEPING = 100
"""A smaller answer is made anew each time: that takes no longer than looking it up is worth."""


@handles(MetadataRequest, versions="0-13")
def metadata(context: Context, request: MetadataRequest) -> MetadataResponse:
    """Answer from the cache; unknown topics may be created, for the next time.

    Clients repeat themselves, and 10,000 partitions take a while to encode: the bytes of a large
    answer are kept until the metadata changes.
    """
    derived = context.broker.metadata.derived
    wants_all = request.topics is None or (context.api_version == 0 and not request.topics)
    wanted = None if wants_all else tuple((t.name, t.topic_id) for t in request.topics or ())
    key = (
        context.api_version,
        context.listener,
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
        wanted,
    )
    known = derived.get(key)
    if known is not None:
        return cast("MetadataResponse", known)
    topics = _all_topics(context, request) if wants_all else _named_topics(context, request)
    response = _response(context, request, topics)
    if len(derived) < REMEMBERED_ANSWERS and _is_worth_keeping(topics):
        derived[key] = EncodedResponse(response.encode_parts(context.api_version))
    return response


def _is_worth_keeping(topics: list[Topic]) -> bool:
    """Whether an answer is large, and has no error that the next request may change."""
    if any(topic.error_code for topic in topics):
        return False
    return sum(len(topic.partitions) for topic in topics) >= PARTITIONS_WORTH_KEEPING


def _all_topics(context: Context, request: MetadataRequest) -> list[Topic]:
    return [_topic(context, request, topic) for topic in context.broker.metadata.topics.values()]


def _response(context: Context, request: MetadataRequest, topics: list[Topic]) -> MetadataResponse:
    cache = context.broker.metadata
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in cache.nodes(context.listener)
        ],
        cluster_id=context.broker.cluster_id,
        controller_id=cache.live_controller_id,
        topics=topics,
        cluster_authorized_operations=authorized_operations.CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else authorized_operations.NOT_REQUESTED,
    )


def _named_topics(context: Context, request: MetadataRequest) -> list[Topic]:
    wanted = {(topic.name, topic.topic_id): None for topic in request.topics or ()}
    if context.api_version < FIRST_VERSION_BY_ID and any(
        name is None or topic_id != ZERO_UUID for name, topic_id in wanted
    ):
        return [
            _error(ErrorCode.INVALID_REQUEST, name or "", topic_id) for name, topic_id in wanted
        ]
    if any(topic_id != ZERO_UUID for _, topic_id in wanted):
        return [_topic_by_id(context, request, id_) for _, id_ in wanted if id_ != ZERO_UUID]
    return [_topic_by_name(context, request, name or "") for name, _ in wanted]


def _topic_by_id(context: Context, request: MetadataRequest, topic_id: UUID) -> Topic:
    cache = context.broker.metadata
    name = cache.topic_name(topic_id)
    known = None if name is None else cache.topic(name)
    if known is None:
        return _error(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    return _topic(context, request, known)


def _topic_by_name(context: Context, request: MetadataRequest, name: str) -> Topic:
    known = context.broker.metadata.topic(name)
    if known is not None:
        return _topic(context, request, known)
    if request.allow_auto_topic_creation and context.broker.config.auto_create_topics_enable:
        code = context.broker.auto_topics.request(name)
    elif name_problem(name):
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    else:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _error(code, name, ZERO_UUID)


def _error(code: ErrorCode, name: str | None, topic_id: UUID) -> Topic:
    return Topic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
    )


def _topic(context: Context, request: MetadataRequest, topic: TopicMetadata) -> Topic:
    return Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=_partitions(context, topic),
        topic_authorized_operations=authorized_operations.TOPIC_OPERATIONS
        if request.include_topic_authorized_operations
        else authorized_operations.NOT_REQUESTED,
    )


def _partitions(context: Context, topic: TopicMetadata) -> list[Partition]:
    cache = context.broker.metadata
    return [
        _partition(cache, state, context.listener, context.api_version)
        for state in topic.partitions.values()
    ]


def _partition(
    cache: MetadataCache, state: UpdateMetadataPartitionState, listener: str, version: int
) -> Partition:
    code = leader_error(cache, state, listener)
    if code is ErrorCode.LISTENER_NOT_FOUND and version < FIRST_VERSION_WITH_LISTENER_ERROR:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    return Partition(
        error_code=code,
        partition_index=state.partition_index,
        leader_id=state.leader if code is ErrorCode.NONE else -1,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        offline_replicas=state.offline_replicas,
    )


def leader_error(
    cache: MetadataCache, state: UpdateMetadataPartitionState, listener: str
) -> ErrorCode:
    """Why clients of a listener cannot reach a partition's leader; NONE if they can."""
    broker = cache.brokers.get(state.leader)
    if broker is None:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NONE if listener in broker.endpoints else ErrorCode.LISTENER_NOT_FOUND
