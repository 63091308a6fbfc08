"""Plausible values of a field, by its name, so that a request gets past the first checks."""

from __future__ import annotations

import gzip
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from config.catalogue import BROKER_KEYS, TOPIC_KEYS
from protocol.fields import Kind
from protocol.uuids import ZERO_UUID
from protocol.wire import encode_uvarint
from tests.hostile.frames import names
from tests.hostile.frames.batches import draw_batch
from tests.hostile.frames.draw import Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Maker = Callable[[Draw], Any]

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
SUBSCRIPTION: Final = b"\0\1\0\0\0\1\0\x0cfuzz-topic-1\xff\xff\xff\xff\0\0\0\0"
ASSIGNMENT: Final = b"\0\1\0\0\0\1\0\x0cfuzz-topic-1\0\0\0\1\0\0\0\0\xff\xff\xff\xff"
PATTERNS: Final = (
    "",
    ".*",
    "fuzz-.*",
    "a+",
    "(a+)+b",
    "(",
    "[a-",
    "(?i)FUZZ",
    "\\p{L}+",
    "a{99999}",
)
CONFIG_VALUES: Final = (
    *("1", "0", "-1", "1000", "10000000", "9223372036854775807", "9223372036854775808"),
    *("true", "false", "delete", "compact", "compact,delete", "zstd", "gzip", "producer"),
    *("", " ", "0:0", "0:0,", "*", "none", "x" * 300, "é", "0.5", "NaN", "1e99", "CreateTime"),
)
GROUP_OR_METRICS: Final = (
    *("share.auto.offset.reset", "share.isolation.level", "share.record.lock.duration.ms"),
    *("share.partition.max.record.locks", "share.delivery.count.limit", "interval.ms"),
    *("metrics", "match", "consumer.session.timeout.ms", "streams.num.standby.replicas"),
)
KINDS_OF_GROUPS: Final = (
    *(names.SHARE_GROUPS, names.CONSUMER_GROUPS, names.STREAMS_GROUPS, names.GROUPS),
)
ROUTINE_TOPIC_KEYS: Final = (
    *("retention.ms", "retention.bytes", "segment.bytes", "cleanup.policy", "compression.type"),
    *("max.message.bytes", "min.insync.replicas", "message.timestamp.type"),
    *("leader.replication.throttled.replicas", "segment.index.bytes", "index.interval.bytes"),
)


def _topic(draw: Draw) -> str:
    if draw.happens(0.8):
        return draw.topic
    return draw.pick(
        draw.pick((names.TOPICS, names.TOPICS, names.ODD_TOPICS, names.INTERNAL_TOPICS))
    )


def _group(draw: Draw) -> str:
    return draw.group if draw.happens(0.95) else draw.pick(("", "x" * 300, "é", "fuzz group"))


def _transaction(draw: Draw) -> str | None:
    return draw.transaction if draw.happens(0.9) else draw.pick((None, "", "é"))


def _seldom_transaction(draw: Draw) -> str | None:
    return draw.transaction if draw.happens(0.3) else None


def _config_key(draw: Draw) -> str:
    if draw.happens(0.7):
        return draw.pick(ROUTINE_TOPIC_KEYS)
    return draw.pick(
        draw.pick((tuple(TOPIC_KEYS), tuple(BROKER_KEYS), GROUP_OR_METRICS, ("", "no.such.key")))
    )


def _resource_name(draw: Draw) -> str:
    if draw.happens(0.3):
        return draw.pick(("0", "", "1", "x"))
    return draw.group_of(names.SHARE_GROUPS) if draw.happens(0.2) else _topic(draw)


def _member(draw: Draw) -> str:
    member, _ = draw.member()
    return member if draw.happens(0.85) else draw.pick(("", "nobody", f"{names.PREFIX}-é"))


def _generation(draw: Draw) -> int:
    _, generation = draw.member()
    return generation if draw.happens(0.85) else draw.pick((-1, 0, 1, 2, INT32_MAX))


def _producer_id(draw: Draw) -> int:
    producer_id, _ = draw.producer(draw.transaction)
    return producer_id if draw.happens(0.8) else draw.pick((-1, 0, 5, 1000, INT64_MAX))


def _producer_epoch(draw: Draw) -> int:
    _, epoch = draw.producer(draw.transaction)
    return epoch if draw.happens(0.8) else draw.pick((-1, 0, 1, 32767))


def _timeout(draw: Draw) -> int:
    return draw.pick((0, 1, 50, 100, 100, 1000, 30_000, -1, INT32_MAX))


def _group_of(groups: Sequence[str]) -> Maker:
    return lambda draw: draw.group_of(groups) if draw.happens(0.95) else draw.group


def _own_name(draw: Draw) -> str:
    return draw.name if draw.happens(0.9) else draw.pick(("", "nobody", "x" * 37))


def _epoch_in(groups: Sequence[str]) -> Maker:
    return lambda draw: draw.epoch(groups) if draw.happens(0.7) else draw.pick((-2, -1, 0, 0, 1))


def _share_epoch(draw: Draw) -> int:
    key = draw.group_of(names.SHARE_GROUPS), draw.name
    known = draw.known.share_epochs.get(key, 0)
    return known if draw.happens(0.8) else draw.pick((-1, 0, 0, 1, 2, INT32_MAX))


def _instance_id(draw: Draw) -> Any:
    told, other = draw.known.subscription, draw.topic_id()
    return told[0] if draw.happens(0.7) and told else other


def _subscription_id(draw: Draw) -> int:
    told, other = draw.known.subscription, draw.pick((0, 1, -1, INT32_MAX))
    return told[1] if draw.happens(0.8) and told else other


def _directory(draw: Draw) -> str:
    if draw.happens(0.6):
        return draw.known.log_directory
    return draw.pick(("no-such-directory", "", "/", draw.known.log_directory + "/.."))


def _metrics(draw: Draw) -> bytes:
    """A push: a gauge, names that repeat, what is nested or empty, or what is none."""
    kind = draw.pick(("gauge", "empty", "deep", "bomb", "none"))
    count = draw.pick((1, 3, 50, 3000))
    if kind == "gauge":
        return _resource(_field(2, _field(2, _GAUGE)) * count)
    if kind == "empty":
        return b"\x0a\0" * count
    if kind == "deep":
        value = b""
        for _ in range(min(count, 90)):
            value = _field(5, _field(1, value))
        return _resource(_field(1, _field(1, _field(1, b"k") + _field(2, value))))
    return _bomb() if kind == "bomb" else b"\xff" * count


@cache
def _bomb() -> bytes:
    """Fifty thousand bytes that decompress to fifty million."""
    return gzip.compress(bytes(50_000_000), mtime=0)


def _field(number: int, value: bytes) -> bytes:
    """One of a Protocol Buffers message."""
    return encode_uvarint(number << 3 | 2) + encode_uvarint(len(value)) + value


def _resource(content: bytes) -> bytes:
    return _field(1, content)


_GAUGE = _field(1, b"org.apache.kafka.fuzz") + _field(5, _field(1, b"\x21" + bytes(8)))


def _one_of(*values: Any) -> Maker:
    return lambda draw: draw.pick(values)


_partition = _one_of(0, 0, 0, 1, 1, 2, 3, names.PARTITIONS, 100, -1)
_leader_epoch = _one_of(-1, -1, -1, 0, 0, 1, 1000)
_offset = _one_of(0, 0, 1, 5, 50, -1, -2, 10**6, INT64_MAX)
_member_metadata = _one_of(SUBSCRIPTION, SUBSCRIPTION, b"", b"\xff" * 40, ASSIGNMENT)
_protocol = _one_of("range", "range", "roundrobin", "", "sticky")
_instance = _one_of(None, None, None, "fuzz-instance-1", "fuzz-instance-2", "")

BY_NAME: Final[dict[str, Maker]] = {
    "acknowledge_types": _one_of(1, 1, 1, 2, 3, 0, 4, -1, 5),
    "acks": _one_of(1, 1, -1, -1, 0, 2),
    "allow_auto_topic_creation": _one_of(False, False, False, True),
    "assignment": _one_of(ASSIGNMENT, ASSIGNMENT, b"", SUBSCRIPTION),
    "broker_id": _one_of(0, 0, 0, 1, -1),
    "broker_ids": _one_of(0, 0, 0, 0, 1, -1),
    "client_instance_id": _instance_id,
    "committed_metadata": _one_of("", None, "somewhere", "x" * 4000, "x" * 5000),
    "config_operation": _one_of(0, 0, 1, 2, 3, 4, -1),
    "configuration_keys": _config_key,
    "controller_epoch": _one_of(0, 0, 1, 1, 2),
    "coordinator_epoch": _one_of(0, 0, -1, 1),
    "coordinator_keys": _group,
    "count": _one_of(1, 2, 4, 5, 6, 8, 0, -1),
    "current_leader_epoch": _leader_epoch,
    "election_type": _one_of(0, 0, 1, 2),
    "endpoint_information_epoch": _one_of(0, 0, -1, 1),
    "endpoint_type": _one_of(1, 1, 1, 2, 0),
    "feature": _one_of("share.version", "group.version", "streams.version", "", "no.such"),
    "fetch_offset": _offset,
    "first_offset": _one_of(0, 0, 1, 5, -1, INT64_MAX),
    "generation_id": _generation,
    "generation_id_or_member_epoch": _generation,
    "group_id": _group,
    "group_instance_id": _instance,
    "group_ids": lambda draw: draw.group_of(draw.pick(KINDS_OF_GROUPS)),
    "groups_names": _group,
    "host": _one_of("localhost", "", "x" * 300),
    "index": _partition,
    "instance_id": _one_of(None, None, None, "fuzz-instance-1", ""),
    "is_renew_ack": _one_of(False, False, False, True),
    "isolation_level": _one_of(0, 0, 1, 1, 2),
    "key": _group,
    "key_type": _one_of(0, 0, 1, 1, 2),
    "last_offset": _one_of(0, 0, 1, 5, 9, 1000, -1, INT64_MAX),
    "leader_epoch": _leader_epoch,
    "max_bytes": _one_of(1_000_000, 100_000, 1, 0, INT32_MAX),
    "max_records": _one_of(500, 500, 1, 0, -1, INT32_MAX),
    "max_version_level": _one_of(0, 1, 1, 2, -1),
    "max_wait_ms": _one_of(0, 0, 0, 1, 10, 100, 500, -1),
    "member_epoch": _one_of(-1, -1, 0, 1),
    "member_id": _member,
    "metadata": _member_metadata,
    "metrics": _metrics,
    "min_bytes": _one_of(0, 0, 1, 1, 1000, INT32_MAX),
    "num_partitions": _one_of(-1, 1, 2, 4, 8, 0),
    "offset": _offset,
    "partition": _partition,
    "partition_index": _partition,
    "partition_indexes": _partition,
    "partition_max_bytes": _one_of(1_000_000, 10_000, 1, 0, INT32_MAX),
    "partitions": _partition,
    "path": _directory,
    "process_id": _one_of("fuzz-process", "fuzz-process", "fuzz-other", ""),
    "producer_epoch": _producer_epoch,
    "producer_id": _producer_id,
    "producer_id_filters": _producer_id,
    "protocol_name": _protocol,
    "protocol_type": _one_of("consumer", "consumer", "consumer", "connect", ""),
    "rebalance_timeout_ms": _one_of(50, 100, 500, 1000, -1, INT32_MAX),
    "rack_id": _one_of(None, None, "fuzz-rack", ""),
    "records": draw_batch,
    "replica_id": _one_of(-1, -1, -1, -1, 0, 1, -2),
    "replicas": _one_of(0, 0, 0, 1),
    "replication_factor": _one_of(-1, 1, 1, 2, 0),
    "resource_name": _resource_name,
    "resource_type": _one_of(2, 2, 2, 4, 8, 16, 32, 32, 0),
    "response_partition_limit": _one_of(2000, 1, 0, -1),
    "retention_time_ms": _one_of(-1, -1, 1000, 60_000),
    "session_epoch": _one_of(-1, -1, 0, 0, 1, 2, 3),
    "session_id": lambda draw: draw.session() if draw.happens(0.6) else 0,
    "server_assignor": _one_of(None, "uniform", "range", "nonsense"),
    "session_timeout_ms": _one_of(1000, 1000, 2000, 6000, 1, INT32_MAX),
    "share_acquire_mode": _one_of(0, 0, 1, 2),
    "share_session_epoch": _share_epoch,
    "shutdown_application": _one_of(False, False, False, False, True),
    "start_offset": _offset,
    "state_epoch": _one_of(0, 1, 1, 2, -1),
    "state_filters": _one_of("Empty", "Ongoing", "CompleteCommit", "", "nonsense"),
    "states_filter": _one_of("Stable", "Empty", "Dead", "nonsense", "PreparingRebalance"),
    "subscribed_topic_names": _topic,
    "subscribed_topic_regex": _one_of(None, None, *PATTERNS),
    "subscription_id": _subscription_id,
    "subtopology_id": _one_of("0", "0", "1", ""),
    "timeout_ms": _timeout,
    "timestamp": _one_of(-1, -2, -3, -4, -5, 0, 1_700_000_000_000, INT64_MAX, -100),
    "topic": _topic,
    "topic_id": lambda draw: draw.topic_id() if draw.happens(0.9) else ZERO_UUID,
    "topic_name": _topic,
    "topic_names": _topic,
    "transaction_timeout_ms": _one_of(60_000, 1000, 1, 0, -1, INT32_MAX),
    "transactional_id": _transaction,
    "transactional_id_pattern": _one_of(None, *PATTERNS),
    "transactional_ids": _transaction,
    "types_filter": _one_of("classic", "consumer", "share", "nonsense"),
    "v3_and_below_producer_epoch": _producer_epoch,
    "v3_and_below_producer_id": _producer_id,
    "v3_and_below_transactional_id": _transaction,
    "validate_only": _one_of(True, True, False),
    "verify_only": _one_of(True, False),
}

BY_PLACE: Final[dict[str, Maker]] = {
    "Config.name": _config_key,
    "Config.value": _one_of(*CONFIG_VALUES),
    "ConsumerGroupHeartbeatRequest.group_id": _group_of(names.CONSUMER_GROUPS),
    "ConsumerGroupHeartbeatRequest.member_epoch": _epoch_in(names.CONSUMER_GROUPS),
    "ConsumerGroupHeartbeatRequest.member_id": _own_name,
    "JoinGroupRequest.Protocol.name": _protocol,
    "PushTelemetryRequest.compression_type": _one_of(0, 0, 0, 1, 1, 2, 3, 4, 5),
    "PushTelemetryRequest.terminating": _one_of(False, False, False, True),
    "ShareAcknowledgeRequest.group_id": _group_of(names.SHARE_GROUPS),
    "ShareAcknowledgeRequest.member_id": _own_name,
    "ShareFetchRequest.group_id": _group_of(names.SHARE_GROUPS),
    "ShareFetchRequest.member_id": _own_name,
    "ShareGroupHeartbeatRequest.group_id": _group_of(names.SHARE_GROUPS),
    "ShareGroupHeartbeatRequest.member_epoch": _epoch_in(names.SHARE_GROUPS),
    "ShareGroupHeartbeatRequest.member_id": _own_name,
    "StreamsGroupHeartbeatRequest.group_id": _group_of(names.STREAMS_GROUPS),
    "StreamsGroupHeartbeatRequest.member_epoch": _epoch_in(names.STREAMS_GROUPS),
    "StreamsGroupHeartbeatRequest.member_id": _own_name,
    **{
        f"{name}Request.group_id": _group_of(names.SHARE_GROUPS)
        for name in (
            *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState"),
            *("DeleteShareGroupState", "ReadShareGroupStateSummary", "AlterShareGroupOffsets"),
            "DeleteShareGroupOffsets",
        )
    },
    "ProduceRequest.transactional_id": _seldom_transaction,
}
"""Fields whose name means something else than elsewhere."""

_INTEGERS: Final = {
    Kind.INT8: _one_of(0, 1, -1, 2, 127),
    Kind.INT16: _one_of(0, 1, -1, 100, 32767),
    Kind.UINT16: _one_of(0, 1, 9092, 65535),
    Kind.INT32: _one_of(0, 0, 1, -1, 100, INT32_MAX),
    Kind.INT64: _one_of(0, 0, 1, -1, 10**12, INT64_MAX),
}


def maker_of(place: str, name: str, kind: Kind) -> Maker:
    """Return a maker of values of a field, or of the elements of an array of numbers or texts.

    `place` is the qualified name of the struct that has it.
    """
    struct = place.rpartition(".")[2]
    for key in (f"{place}.{name}", f"{struct}.{name}"):
        if key in BY_PLACE:
            return BY_PLACE[key]
    if name in {"name", "topics", "groups"} and kind is Kind.STRING:
        return _group if name == "groups" else _topic
    return BY_NAME.get(name) or _by_kind(kind)


def _by_kind(kind: Kind) -> Maker:
    match kind:
        case Kind.BOOL:
            return _one_of(False, True)
        case Kind.STRING:
            return _one_of("", "fuzz", "é", "x" * 200)
        case Kind.BYTES | Kind.RECORDS:
            return _one_of(b"", b"\0", b"bytes" * 10)
        case Kind.UUID:
            return Draw.topic_id
        case Kind.FLOAT64:
            return _one_of(0.0, 1.5, float("inf"), float("nan"))
    return _INTEGERS[kind]


def extremes_of(kind: Kind) -> Sequence[int]:
    """The numbers at the ends of an integer's range, and those beside zero."""
    bits = {Kind.INT8: 8, Kind.INT16: 16, Kind.UINT16: 16, Kind.INT32: 32, Kind.INT64: 64}[kind]
    if kind is Kind.UINT16:
        return (0, 1, 2**16 - 1)
    top = 2 ** (bits - 1)
    return (-top, -top + 1, -2, -1, 0, 1, top // 2, top - 2, top - 1)
