"""What a field may plausibly hold, by its name, so that a request gets past the first checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from config.catalogue import BROKER_KEYS, TOPIC_KEYS
from protocol.fields import Kind
from protocol.uuids import ZERO_UUID
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
    return draw.pick(draw.pick((tuple(TOPIC_KEYS), tuple(BROKER_KEYS), ("", "no.such.key"))))


def _resource_name(draw: Draw) -> str:
    return draw.pick(("0", "", "1", "x")) if draw.happens(0.3) else _topic(draw)


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


def _one_of(*values: Any) -> Maker:
    return lambda draw: draw.pick(values)


_partition = _one_of(0, 0, 0, 1, 1, 2, 3, names.PARTITIONS, 100, -1)
_leader_epoch = _one_of(-1, -1, -1, 0, 0, 1, 1000)
_offset = _one_of(0, 0, 1, 5, 50, -1, -2, 10**6, INT64_MAX)
_member_metadata = _one_of(SUBSCRIPTION, SUBSCRIPTION, b"", b"\xff" * 40, ASSIGNMENT)
_protocol = _one_of("range", "range", "roundrobin", "", "sticky")
_instance = _one_of(None, None, None, "fuzz-instance-1", "fuzz-instance-2", "")

BY_NAME: Final[dict[str, Maker]] = {
    "acks": _one_of(1, 1, -1, -1, 0, 2),
    "allow_auto_topic_creation": _one_of(False, False, False, True),
    "assignment": _one_of(ASSIGNMENT, ASSIGNMENT, b"", SUBSCRIPTION),
    "broker_id": _one_of(0, 0, 0, 1, -1),
    "broker_ids": _one_of(0, 0, 0, 0, 1, -1),
    "committed_metadata": _one_of("", None, "somewhere", "x" * 4000, "x" * 5000),
    "config_operation": _one_of(0, 0, 1, 2, 3, 4, -1),
    "configuration_keys": _config_key,
    "controller_epoch": _one_of(0, 0, 1, 1, 2),
    "coordinator_epoch": _one_of(0, 0, -1, 1),
    "coordinator_keys": _group,
    "count": _one_of(1, 2, 4, 5, 6, 8, 0, -1),
    "current_leader_epoch": _leader_epoch,
    "election_type": _one_of(0, 0, 1, 2),
    "endpoint_type": _one_of(1, 1, 1, 2, 0),
    "fetch_offset": _offset,
    "generation_id": _generation,
    "generation_id_or_member_epoch": _generation,
    "group_id": _group,
    "group_instance_id": _instance,
    "groups_names": _group,
    "index": _partition,
    "isolation_level": _one_of(0, 0, 1, 1, 2),
    "key": _group,
    "key_type": _one_of(0, 0, 1, 1, 2),
    "leader_epoch": _leader_epoch,
    "max_bytes": _one_of(1_000_000, 100_000, 1, 0, INT32_MAX),
    "max_wait_ms": _one_of(0, 0, 0, 1, 10, 100, 500, -1),
    "member_epoch": _one_of(-1, -1, 0, 1),
    "member_id": _member,
    "metadata": _member_metadata,
    "min_bytes": _one_of(0, 0, 1, 1, 1000, INT32_MAX),
    "num_partitions": _one_of(-1, 1, 2, 4, 8, 0),
    "offset": _offset,
    "partition": _partition,
    "partition_index": _partition,
    "partition_indexes": _partition,
    "partition_max_bytes": _one_of(1_000_000, 10_000, 1, 0, INT32_MAX),
    "partitions": _partition,
    "path": _one_of("no-such-directory", "", "/"),
    "producer_epoch": _producer_epoch,
    "producer_id": _producer_id,
    "producer_id_filters": _producer_id,
    "protocol_name": _protocol,
    "protocol_type": _one_of("consumer", "consumer", "consumer", "connect", ""),
    "rebalance_timeout_ms": _one_of(50, 100, 500, 1000, -1, INT32_MAX),
    "records": draw_batch,
    "replica_id": _one_of(-1, -1, -1, -1, 0, 1, -2),
    "replicas": _one_of(0, 0, 0, 1),
    "replication_factor": _one_of(-1, 1, 1, 2, 0),
    "resource_name": _resource_name,
    "resource_type": _one_of(2, 2, 2, 4, 8, 16, 0),
    "response_partition_limit": _one_of(2000, 1, 0, -1),
    "retention_time_ms": _one_of(-1, -1, 1000, 60_000),
    "session_epoch": _one_of(-1, -1, 0, 0, 1, 2, 3),
    "session_id": lambda draw: draw.session() if draw.happens(0.6) else 0,
    "session_timeout_ms": _one_of(1000, 1000, 2000, 6000, 1, INT32_MAX),
    "state_filters": _one_of("Empty", "Ongoing", "CompleteCommit", "", "nonsense"),
    "states_filter": _one_of("Stable", "Empty", "Dead", "nonsense", "PreparingRebalance"),
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
    "JoinGroupRequest.Protocol.name": _protocol,
    "ProduceRequest.transactional_id": _seldom_transaction,
}
"""Where a name means something else than elsewhere."""

_INTEGERS: Final = {
    Kind.INT8: _one_of(0, 1, -1, 2, 127),
    Kind.INT16: _one_of(0, 1, -1, 100, 32767),
    Kind.UINT16: _one_of(0, 1, 9092, 65535),
    Kind.INT32: _one_of(0, 0, 1, -1, 100, INT32_MAX),
    Kind.INT64: _one_of(0, 0, 1, -1, 10**12, INT64_MAX),
}


def maker_of(place: str, name: str, kind: Kind) -> Maker:
    """What makes values of a field, or the elements of an array of numbers or texts.

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
