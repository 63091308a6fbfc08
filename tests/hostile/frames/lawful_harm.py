"""Commands that a broker has to obey, though they harm others: what a run does not send, and why.

Without security everybody may command everything, here as in Apache Kafka: to delete a topic, to
change the broker's configuration, to speak for the controller. A frame that is such a command, as
the broker reads it, proves nothing about the broker. It is decoded as the broker would decode it:
what differs by one bit, and is no longer a command that harms, is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS
from config.key import CLUSTER_WIDE, DYNAMIC_ONLY
from config.precedence import unprefixed
from controller.features.levels import FEATURES
from protocol.api_keys import ApiKey
from protocol.headers import parse_request_header
from protocol.messages.alter_partition import AlterPartitionRequest
from protocol.messages.api_versions import UpdateFeaturesRequest
from protocol.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from protocol.messages.controlled_shutdown import ControlledShutdownRequest
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from protocol.messages.transactions import WriteTxnMarkersRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from protocol.wire import DecodeError
from tests.hostile.frames.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.schema import Request

BROKER, TOPIC = 4, 2
MOST_PARTITIONS: Final = 16
LEAST_REFUSED_PARTITIONS: Final = 100_000
"""More than any broker would create for one request, whatever its limit."""

FIRST_CONTROLLER_EPOCH: Final = 1
"""Of the broker that a run starts: it is alone, and wins its first election."""

ADMIN_CLIENT_ID: Final = "__admin_client"
HARMLESS_KEYS: Final = frozenset(
    {
        *("compression.gzip.level", "compression.lz4.level", "compression.zstd.level"),
        *("leader.replication.throttled.rate", "follower.replication.throttled.rate"),
        *("log.cleaner.backoff.ms", "log.cleaner.io.buffer.size", "log.index.interval.bytes"),
    }
)
FLUSH_KEYS: Final = frozenset({"flush.messages", "flush.ms"})


def harm_of(content: bytes) -> str:
    """Return the harm of a frame, without its length, that lawfully harms others; empty if none."""
    try:
        header, position = parse_request_header(content)
        rule = _RULES.get(header.api_key)
        if rule is None:
            return ""
        request_class, judge = rule
        request, _ = request_class.decode_from(header.api_version, content, position)
    except (DecodeError, ValueError):
        return ""
    return judge(request, header.client_id)


def _of_configs(request: Any, _client: object) -> str:
    if request.validate_only:
        return ""
    for resource in request.resources:
        keys = {unprefixed(config.name) for config in resource.configs}
        if resource.resource_type == BROKER and keys & _HARMFUL_KEYS:
            return "changes how the broker works for everybody"
        if resource.resource_type == TOPIC and resource.resource_name in INTERNAL_TOPICS:
            return "changes an internal topic"
        if resource.resource_type == TOPIC and keys & FLUSH_KEYS:
            return "asks for a disk write with every append, which all clients wait for"
    return ""


def _of_new_topics(request: CreateTopicsRequest, _client: object) -> str:
    if any(config.name in FLUSH_KEYS for topic in request.topics for config in topic.configs):
        return "asks for a disk write with every append, which all clients wait for"
    counts = [max(topic.num_partitions, len(topic.assignments)) for topic in request.topics]
    return "" if request.validate_only else _of_counts(counts)


def _of_new_partitions(request: CreatePartitionsRequest, _client: object) -> str:
    if any(topic.name in INTERNAL_TOPICS for topic in request.topics):
        return "changes an internal topic"
    return "" if request.validate_only else _of_counts([topic.count for topic in request.topics])


def _of_counts(counts: list[int]) -> str:
    many = [count for count in counts if MOST_PARTITIONS < count < LEAST_REFUSED_PARTITIONS]
    return "creates partitions by the thousand" if many else ""


def _of_deleted_topics(request: DeleteTopicsRequest, _client: object) -> str:
    named = {*request.topic_names, *(topic.name for topic in request.topics)}
    return "deletes an internal topic" if named & set(INTERNAL_TOPICS) else ""


def _of_markers(request: WriteTxnMarkersRequest, _client: object) -> str:
    named = {topic.name for marker in request.markers for topic in marker.topics}
    return "ends transactions of others" if named & set(INTERNAL_TOPICS) else ""


def _of_records(request: ProduceRequest, client: object) -> str:
    named = {topic.name for topic in request.topic_data}
    is_admin = client == ADMIN_CLIENT_ID
    return "writes into an internal topic" if is_admin and named & set(INTERNAL_TOPICS) else ""


def _of_the_controller(request: Any, _client: object) -> str:
    """A newer epoch makes its sender the controller; one of now may only harm us."""
    if request.controller_epoch > FIRST_CONTROLLER_EPOCH:
        return "deposes the controller"
    if request.controller_epoch < FIRST_CONTROLLER_EPOCH:
        return ""
    if isinstance(request, UpdateMetadataRequest) or _is_complete(request):
        return "tells what brokers and partitions there are in all"
    named = {topic.topic_name for topic in request.topic_states}
    return "stops replicas of others" if named & set(INTERNAL_TOPICS) else ""


def _is_complete(request: Any) -> bool:
    return isinstance(request, LeaderAndIsrRequest) and request.type != 0


def _of_brokers(request: Any, _client: object) -> str:
    """Of broker epochs: -1 is for whoever does not know; one from before is refused."""
    is_obeyed = request.broker_epoch == -1 or request.broker_epoch > 0
    return "speaks for a broker" if is_obeyed else ""


def _of_features(request: UpdateFeaturesRequest, _client: object) -> str:
    known = {feature.name for feature in FEATURES}
    named = {update.feature for update in request.feature_updates}
    return "" if request.validate_only or not named & known else "changes what the cluster can do"


_HARMFUL_KEYS: Final = {
    name
    for name, one in (BROKER_KEYS | DYNAMIC_KEYS).items()
    if one.key.scope in (CLUSTER_WIDE, DYNAMIC_ONLY) and name not in HARMLESS_KEYS
}

_RULES: Final[dict[int, tuple[type[Request], Callable[[Any, object], str]]]] = {
    ApiKey.ALTER_CONFIGS: (AlterConfigsRequest, _of_configs),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (IncrementalAlterConfigsRequest, _of_configs),
    ApiKey.UPDATE_FEATURES: (UpdateFeaturesRequest, _of_features),
    ApiKey.CREATE_TOPICS: (CreateTopicsRequest, _of_new_topics),
    ApiKey.CREATE_PARTITIONS: (CreatePartitionsRequest, _of_new_partitions),
    ApiKey.DELETE_TOPICS: (DeleteTopicsRequest, _of_deleted_topics),
    ApiKey.WRITE_TXN_MARKERS: (WriteTxnMarkersRequest, _of_markers),
    ApiKey.PRODUCE: (ProduceRequest, _of_records),
    ApiKey.LEADER_AND_ISR: (LeaderAndIsrRequest, _of_the_controller),
    ApiKey.UPDATE_METADATA: (UpdateMetadataRequest, _of_the_controller),
    ApiKey.STOP_REPLICA: (StopReplicaRequest, _of_the_controller),
    ApiKey.CONTROLLED_SHUTDOWN: (ControlledShutdownRequest, _of_brokers),
    ApiKey.ALTER_PARTITION: (AlterPartitionRequest, _of_brokers),
}
