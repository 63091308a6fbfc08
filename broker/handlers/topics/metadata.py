"""Metadata: brokers, topics, leaders.

Versions 0 to 13. Null stands for all topics and an empty list for none, but in v0 an empty list for
all. Topics are named by id from v12; from v4 a request may forbid automatic creation.

A partition without a leader has LEADER_NOT_AVAILABLE and leader -1, and its leader epoch if that is
known. The same holds if the leader lacks the client's listener; from v6 on with LISTENER_NOT_FOUND.

Topics that the client may not describe are left out of the answer for all; one that it names is
TOPIC_AUTHORIZATION_FAILED, whether it exists or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from broker.handlers.topics.mutation_quota import create_on_first_use, must_wait
from broker.metadata.metadata_cache import LiveBroker
from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_topic,
    may_create_topic,
    would_be_allowed_on_topic,
)
from broker.requests.authorized_operations import cluster_operations, topic_operations
from broker.requests.encoded_response import EncodedResponse, encoded_in_slices
from broker.runtime.deferred import Deferred, from_future, in_background
from controller.topics.topic_names import INTERNAL_TOPICS, name_problem
from protocol.acl_types import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from uuid import UUID

    from broker.metadata.metadata_cache import MetadataCache, TopicMetadata
    from broker.requests.context import Context
    from protocol.messages.update_metadata import UpdateMetadataPartitionState

    Known = MetadataResponse

Named = MetadataRequest.Topic
Topic = MetadataResponse.Topic
Partition = MetadataResponse.Topic.Partition

FIRST_VERSION_WITH_LISTENER_ERROR = 6
FIRST_VERSION_BY_ID = 12
REMEMBERED_ANSWERS = 32
"""Answers kept at one time. Fixed: one for each version that clients use, on a few listeners."""
PARTITIONS_WORTH_KEEPING = 100
"""A smaller answer is not worth keeping: it is made as quickly as it is looked up."""
PARTITIONS_AT_ONCE = 1000
"""A larger answer is made in slices: these take five milliseconds."""

ASKED_AT_ONCE = 5000
"""Topics authorized at once: that takes less than five milliseconds."""
NONE_HIDDEN: frozenset[str] = frozenset()

Brokers = Mapping[int, LiveBroker]
Wanted: TypeAlias = "tuple[tuple[str | None, UUID], ...]"
"""Names and ids of the topics of a request."""


class Content(NamedTuple):
    """Topics that a response shows."""

    is_of_all: bool
    """All topics, and not those that the request names."""
    hidden: frozenset[str] | None
    """The topics that the client may not describe; None if they are checked one by one."""


@handles(MetadataRequest, versions="0-13")
def metadata(
    context: Context, request: MetadataRequest
) -> MetadataResponse | Deferred[MetadataResponse]:
    """Answer from the cache; unknown topics may be created, for the client's next request.

    Clients repeat their requests, and 10,000 partitions take a while to encode: the bytes of a
    large response are cached until the metadata changes, for all clients that may see the same
    topics. Equal requests wait while it is encoded. It has the brokers as of its start; each topic
    is as of its turn.
    """
    cache = context.broker.metadata
    wants_all = request.topics is None or (context.api_version == 0 and not request.topics)
    if context.is_long:  # too long to be kept as a key
        work = _make(context, request, Content(is_of_all=False, hidden=None))
        return in_background(context.broker.spawn, work, "metadata")
    wanted = None if wants_all else tuple((t.name, t.topic_id) for t in request.topics or ())
    hidden = _hidden(context, wanted)
    content = Content(wants_all, hidden)
    key = (
        context.api_version,
        context.listener,
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
        wanted,
        hidden,
    )
    known = cache.derived.get(key)
    if known is not None:
        return from_future(known) if isinstance(known, asyncio.Future) else cast("Known", known)
    is_kept = _may_be_kept(context, request, hidden)
    if _is_long(cache, wanted):
        if is_kept:
            return _make_in_slices(context, request, content, key)
        return in_background(context.broker.spawn, _make(context, request, content), "metadata")
    response = _without_topics(context, request)
    for topic, found in _topics(context, request, content, request.topics or ()):
        topic.partitions = [*_partitions(context, found, cache.brokers)]
        response.topics.append(topic)
    if is_kept and _is_worth_keeping(response.topics) and len(cache.derived) < REMEMBERED_ANSWERS:
        cache.derived[key] = EncodedResponse(response.encode_parts(context.api_version))
    return response


def _hidden(context: Context, wanted: Wanted | None) -> frozenset[str] | None:
    """The topics that the client may not describe; None if they are too many to ask for at once."""
    if context.broker.authorizer is None:
        return NONE_HIDDEN
    cache = context.broker.metadata
    describe = AclOperation.DESCRIBE
    if wanted is None:
        if len(cache.topics) > ASKED_AT_ONCE:
            return None
        return frozenset(
            name for name in cache.topics if not would_be_allowed_on_topic(context, describe, name)
        )
    if len(wanted) > ASKED_AT_ONCE:
        return None
    names = {_name_of(cache, name, topic_id) for name, topic_id in wanted}
    return frozenset(name for name in names if not is_allowed_on_topic(context, describe, name))


def _name_of(cache: MetadataCache, name: str | None, topic_id: UUID) -> str:
    """The topic that a client means: that of the id, if there is one, whatever the name says."""
    return cache.topic_name(topic_id) or name or ""


def _may_be_kept(context: Context, request: MetadataRequest, hidden: frozenset[str] | None) -> bool:
    """Return whether the response is the same for all clients that see the same topics."""
    if context.broker.authorizer is None:
        return True
    return hidden is not None and not (
        request.include_topic_authorized_operations or request.include_cluster_authorized_operations
    )


def _is_long(cache: MetadataCache, wanted: Wanted | None) -> bool:
    """Return whether a response has enough partitions, or topics, to delay other requests."""
    left = PARTITIONS_AT_ONCE
    topics: Iterator[TopicMetadata | None] = (
        iter(cache.topics.values())
        if wanted is None
        else (cache.topic(_name_of(cache, name, id_)) for name, id_ in wanted)
    )
    for topic in topics:
        left -= 1 if topic is None else max(1, len(topic.partitions))
        if left < 0:
            return True
    return False


def _make_in_slices(
    context: Context, request: MetadataRequest, content: Content, key: tuple[object, ...]
) -> Deferred[MetadataResponse]:
    derived = context.broker.metadata.derived
    made: asyncio.Future[MetadataResponse] = asyncio.get_running_loop().create_future()
    if len(derived) < REMEMBERED_ANSWERS:
        derived[key] = made
    response = _without_topics(context, request)

    async def run() -> None:
        try:
            made.set_result(await _filled(context, request, content, response))
        except Exception as error:  # noqa: BLE001 - delivered
            made.set_exception(error)
        finally:
            made.cancel()
            if derived.get(key) is made:  # the metadata has not changed since
                del derived[key]
                if not made.cancelled() and made.exception() is None and _is_sound(response.topics):
                    derived[key] = made.result()

    context.broker.spawn(run(), "metadata")
    return from_future(made)


async def _make(context: Context, request: MetadataRequest, content: Content) -> MetadataResponse:
    return await _filled(context, request, content, _without_topics(context, request))


async def _filled(
    context: Context, request: MetadataRequest, content: Content, response: MetadataResponse
) -> MetadataResponse:
    brokers = context.broker.metadata.brokers
    slices = context.broker.slices()
    named: dict[tuple[str | None, UUID], Named] = {}
    async for one in slices.each(request.topics or ()):
        named.setdefault((one.name, one.topic_id), one)
    async for topic, found in slices.each(_topics(context, request, content, named.values())):
        partitions = _partitions(context, found, brokers)
        topic.partitions = [each async for each in slices.each(partitions)]
        response.topics.append(topic)
    return await encoded_in_slices(context, response)


def _is_sound(topics: list[Topic]) -> bool:
    """Return whether no topic has an error, which may be resolved at the next request."""
    return not any(topic.error_code for topic in topics)


def _is_worth_keeping(topics: list[Topic]) -> bool:
    count = sum(len(topic.partitions) for topic in topics)
    return count >= PARTITIONS_WORTH_KEEPING and _is_sound(topics)


def _without_topics(context: Context, request: MetadataRequest) -> MetadataResponse:
    cache = context.broker.metadata
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in cache.nodes(context.listener)
        ],
        cluster_id=context.broker.cluster_id,
        controller_id=cache.live_controller_id,
        topics=[],
        cluster_authorized_operations=cluster_operations(
            context, is_requested=request.include_cluster_authorized_operations
        ),
    )


def _topics(
    context: Context, request: MetadataRequest, content: Content, topics: Collection[Named]
) -> Iterator[tuple[Topic, TopicMetadata | None]]:
    """Each topic of the answer, still without partitions, and the metadata to make them from."""
    if content.is_of_all:
        for known in list(context.broker.metadata.topics.values()):
            if not _is_hidden(context, content, known.name):
                yield _topic(context, request, known), known
        return
    is_refused = context.api_version < FIRST_VERSION_BY_ID and any(
        topic.name is None or topic.topic_id != ZERO_UUID for topic in topics
    )
    is_by_id = any(topic.topic_id != ZERO_UUID for topic in topics)
    seen: set[tuple[str | None, UUID]] = set()
    for topic in topics:
        name, topic_id = topic.name, topic.topic_id
        key = (None, topic_id) if is_by_id and not is_refused else (name, topic_id)
        if key in seen:  # a topic of many partitions, whatever names its id comes with
            continue
        seen.add(key)
        if is_refused:
            yield _error(ErrorCode.INVALID_REQUEST, name or "", topic_id), None
        elif not is_by_id:
            yield _topic_by_name(context, request, content, name or "")
        elif topic_id != ZERO_UUID:
            yield _topic_by_id(context, request, content, topic_id)


def _is_hidden(context: Context, content: Content, name: str) -> bool:
    if content.hidden is not None:
        return name in content.hidden
    may = would_be_allowed_on_topic if content.is_of_all else is_allowed_on_topic
    return not may(context, AclOperation.DESCRIBE, name)


def _topic_by_id(
    context: Context, request: MetadataRequest, content: Content, topic_id: UUID
) -> tuple[Topic, TopicMetadata | None]:
    cache = context.broker.metadata
    name = cache.topic_name(topic_id)
    known = None if name is None else cache.topic(name)
    if known is None:
        return _error(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id), None
    if _is_hidden(context, content, known.name):
        return _error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id), None
    return _topic(context, request, known), known


def _topic_by_name(
    context: Context, request: MetadataRequest, content: Content, name: str
) -> tuple[Topic, TopicMetadata | None]:
    if _is_hidden(context, content, name):
        return _error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, ZERO_UUID), None
    known = context.broker.metadata.topic(name)
    if known is not None:
        return _topic(context, request, known), known
    unknown = _error(_unknown_or_created(context, request, name), name, ZERO_UUID)
    unknown.is_internal = name in INTERNAL_TOPICS
    if unknown.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        unknown.topic_authorized_operations = topic_operations(
            context, name, is_requested=request.include_topic_authorized_operations
        )
    return unknown, None


def _unknown_or_created(context: Context, request: MetadataRequest, name: str) -> ErrorCode:
    """Error for an unknown name; the topic is created if client and broker allow it."""
    if not (request.allow_auto_topic_creation and context.broker.config.auto_create_topics_enable):
        return unknown_topic_error(name)
    if not may_create_topic(context, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if must_wait(context):
        return unknown_topic_error(name)
    return create_on_first_use(context, name)


def _error(code: ErrorCode, name: str | None, topic_id: UUID) -> Topic:
    return Topic(error_code=code, name=name, topic_id=topic_id, partitions=[])


def _topic(context: Context, request: MetadataRequest, topic: TopicMetadata) -> Topic:
    return Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=topic_operations(
            context, topic.name, is_requested=request.include_topic_authorized_operations
        ),
    )


def _partitions(
    context: Context, topic: TopicMetadata | None, brokers: Brokers
) -> Iterator[Partition]:
    for state in () if topic is None else list(topic.partitions.values()):
        yield _partition(brokers, state, context.listener, context.api_version)


def _partition(
    brokers: Brokers, state: UpdateMetadataPartitionState, listener: str, version: int
) -> Partition:
    code = leader_error(brokers, state, listener)
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


def unknown_topic_error(name: str) -> ErrorCode:
    """The error for a name that no topic has, by whether one could have it."""
    if name_problem(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def leader_error(brokers: Brokers, state: UpdateMetadataPartitionState, listener: str) -> ErrorCode:
    """Error for a partition whose leader is unreachable on a listener; NONE otherwise."""
    broker = brokers.get(state.leader)
    if broker is None:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NONE if listener in broker.endpoints else ErrorCode.LISTENER_NOT_FOUND
