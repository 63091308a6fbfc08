"""Every path of the tree that brokers share, with the encoding of its node.

The bytes are those of Apache Kafka 3.9 in ZooKeeper mode, down to the order of JSON keys: compact,
UTF-8, numbers as numbers except where Kafka writes strings. Decoders accept the nodes of any Kafka
version: unknown keys are skipped, later keys have defaults. All of them raise `MalformedZnodeError`
for a node that is unreadable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from config.listeners.addresses import join_address, split_address
from controller.features.levels import Feature
from protocol.uuids import ZERO_UUID, from_base64, to_base64

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

CONSUMERS = "/consumers"
BROKERS = "/brokers"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
BROKER_SEQUENCE = "/brokers/seqid"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = "/config/changes/config_change_"
ADMIN = "/admin"
DELETE_TOPICS = "/admin/delete_topics"
ISR_CHANGES = "/isr_change_notification"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
LOG_DIR_EVENTS = "/log_dir_event_notification"
CLUSTER = "/cluster"
CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
FEATURE = "/feature"

PERSISTENT_PATHS = (
    CONSUMERS,
    BROKERS,
    BROKER_IDS,
    TOPICS,
    BROKER_SEQUENCE,
    CONFIG,
    CONFIG_CHANGES,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
    ADMIN,
    DELETE_TOPICS,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    CLUSTER,
)
"""Made with no data by the first broker that starts, parents before children."""

TOPIC_ENTITY = "topics"
BROKER_ENTITY = "brokers"
DEFAULT_ENTITY = "<default>"
"""Stands for all brokers (or clients, users) in `/config`; literally, angle brackets included."""

_SECRET_PATHS = ("/config/users/", "/config/brokers/")  # hold credentials: never shown
NO_LEADER = -1
LEADER_DURING_DELETE = -2


class MalformedZnodeError(Exception):
    """A node's bytes are not in Kafka's format for its path."""


# /brokers/ids/N


def broker_path(broker_id: int) -> str:
    """Path of a live broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address at which a broker listens."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    def url(self) -> str:
        """Text form, `LISTENER://host:port`; an IPv6 host stands in brackets."""
        return f"{self.listener}://{join_address(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The registration of a live broker."""

    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    timestamp_ms: int = 0
    features: tuple[Feature, ...] = ()
    """The features that it supports; Apache Kafka's brokers with ZooKeeper have none."""

    def supports(self, feature: str, level: int) -> bool:
        """Return whether it supports this level; every broker does at 0, without the feature."""
        return level == 0 or any(
            one.first <= level <= one.last for one in self.features if one.name == feature
        )


def encode_broker(registration: BrokerRegistration) -> bytes:
    """Bytes of `/brokers/ids/N`, version 5."""
    plain = next((e for e in registration.endpoints if e.security_protocol == "PLAINTEXT"), None)
    content: dict[str, Any] = {
        "features": {
            one.name: {"min_version": max(1, one.first), "max_version": one.last}
            for one in registration.features  # older brokers refuse a minimum below 1
        },
        "listener_security_protocol_map": {
            e.listener: e.security_protocol for e in registration.endpoints
        },
        "endpoints": [e.url() for e in registration.endpoints],
    }
    if registration.rack is not None:
        content["rack"] = registration.rack
    content |= {
        "jmx_port": -1,
        "port": -1 if plain is None else plain.port,
        "host": None if plain is None else plain.host,
        "version": 5,
        "timestamp": str(registration.timestamp_ms),
    }
    return encode_json(content)


def decode_broker(path: str, data: bytes | None) -> BrokerRegistration:
    """Read a registration of version 2 or later. Raises MalformedZnodeError."""
    content = decode_json(path, data)
    try:
        protocols = content.get("listener_security_protocol_map", {})
        endpoints = tuple(_parse_endpoint(url, protocols) for url in content["endpoints"])
        features = tuple(
            Feature(name, int(levels["min_version"]), int(levels["max_version"]))
            for name, levels in content.get("features", {}).items()
        )
        rack, timestamp_ms = content.get("rack"), int(content["timestamp"])
        return BrokerRegistration(endpoints, rack, timestamp_ms, features)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise malformed(path, data) from error


def _parse_endpoint(url: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, _, address = url.partition("://")
    return Endpoint(listener, *split_address(address), protocols.get(listener, listener))


# /controller and /controller_epoch


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    """Bytes of `/controller`, version 2."""
    return encode_json(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes | None) -> int:
    """Id of the controller. Raises MalformedZnodeError."""
    try:
        return int(decode_json(CONTROLLER, data)["brokerid"])
    except (KeyError, TypeError, ValueError) as error:
        raise malformed(CONTROLLER, data) from error


def encode_epoch(epoch: int) -> bytes:
    """Bytes of `/controller_epoch`: plain decimal text."""
    return str(epoch).encode()


def decode_epoch(data: bytes | None) -> int:
    """The controller epoch. Raises MalformedZnodeError."""
    try:
        return int((data or b"").decode())
    except ValueError as error:
        raise malformed(CONTROLLER_EPOCH, data) from error


# /brokers/topics/T


def topic_path(topic: str) -> str:
    """Path of a topic's assignment."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Parent of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """Parent of a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    """Path of a partition's leader and in-sync replicas."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """The replicas of each partition of a topic, preferred leader first."""

    partitions: dict[int, Replicas]
    topic_id: UUID = ZERO_UUID
    adding_replicas: dict[int, Replicas] = field(default_factory=dict)
    removing_replicas: dict[int, Replicas] = field(default_factory=dict)


def encode_topic(assignment: TopicAssignment) -> bytes:
    """Bytes of `/brokers/topics/T`, version 3."""
    return encode_json(
        {
            "partitions": _by_text(assignment.partitions),
            "topic_id": to_base64(assignment.topic_id),
            "adding_replicas": _by_text(assignment.adding_replicas),
            "removing_replicas": _by_text(assignment.removing_replicas),
            "version": 3,
        }
    )


def decode_topic(topic: str, data: bytes | None) -> TopicAssignment:
    """Read an assignment; ZERO_UUID as topic id before version 3. Raises MalformedZnodeError."""
    path = topic_path(topic)
    content = decode_json(path, data)
    try:
        topic_id = content.get("topic_id")
        return TopicAssignment(
            partitions=_by_number(content["partitions"]),
            topic_id=from_base64(topic_id) if topic_id else ZERO_UUID,
            adding_replicas=_by_number(content.get("adding_replicas", {})),
            removing_replicas=_by_number(content.get("removing_replicas", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise malformed(path, data) from error


def _by_text(partitions: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(partitions[partition]) for partition in sorted(partitions)}


def _by_number(partitions: Mapping[str, Sequence[int]]) -> dict[int, Replicas]:
    return {int(text): tuple(int(r) for r in replicas) for text, replicas in partitions.items()}


# /brokers/topics/T/partitions/P/state


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Leader and in-sync replicas of a partition, as the controller decided them."""

    leader: int
    leader_epoch: int
    in_sync_replicas: Replicas
    controller_epoch: int
    is_recovering: bool = False
    """The leader was elected uncleanly and has not recovered yet."""


def encode_state(state: PartitionState) -> bytes:
    """Bytes of a partition's state, version 1. Written thousands at a time, so without `json`."""
    recovery = '"leader_recovery_state":1,' if state.is_recovering else ""
    replicas = ",".join(map(str, state.in_sync_replicas))
    return (
        f'{{"controller_epoch":{state.controller_epoch},"leader":{state.leader},"version":1,'
        f'{recovery}"leader_epoch":{state.leader_epoch},"isr":[{replicas}]}}'
    ).encode()


def decode_state(path: str, data: bytes | None) -> PartitionState:
    """Read a partition's state. Raises MalformedZnodeError."""
    content = decode_json(path, data)
    try:
        return PartitionState(
            leader=int(content["leader"]),
            leader_epoch=int(content["leader_epoch"]),
            in_sync_replicas=tuple(int(replica) for replica in content["isr"]),
            controller_epoch=int(content["controller_epoch"]),
            is_recovering=content.get("leader_recovery_state", 0) == 1,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise malformed(path, data) from error


# /config


def config_path(entity_type: str, entity: str) -> str:
    """Path of the dynamic configuration of a topic, broker, ..."""
    return f"{CONFIG}/{entity_type}/{entity}"


def encode_config(values: Mapping[str, str]) -> bytes:
    """Bytes of a configuration node, version 1; all values are strings."""
    return encode_json({"version": 1, "config": dict(values)})


def decode_config(path: str, data: bytes | None) -> dict[str, str]:
    """Read a configuration node; an empty one has no values. Raises MalformedZnodeError."""
    if not data:
        return {}
    try:
        return {str(k): str(v) for k, v in decode_json(path, data)["config"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise malformed(path, data) from error


def encode_config_change(entity_type: str, entity: str) -> bytes:
    """Bytes of a notification below `/config/changes`, version 2."""
    return encode_json({"version": 2, "entity_path": f"{entity_type}/{entity}"})


def decode_config_change(path: str, data: bytes | None) -> str:
    """Entity path of a notification, as `topics/orders`. Raises MalformedZnodeError."""
    content = decode_json(path, data)
    try:
        if content.get("version") == 1:
            return f"{content['entity_type']}/{content['entity_name']}"
        return str(content["entity_path"])
    except (KeyError, TypeError) as error:
        raise malformed(path, data) from error


# /admin/delete_topics/T, /cluster/id


def delete_topic_path(topic: str) -> str:
    """Node whose existence asks the controller to delete a topic."""
    return f"{DELETE_TOPICS}/{topic}"


def encode_cluster_id(cluster_id: str) -> bytes:
    """Bytes of `/cluster/id`; here the version is a string."""
    return encode_json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    """The cluster's id. Raises MalformedZnodeError."""
    try:
        return str(decode_json(CLUSTER_ID, data)["id"])
    except (KeyError, TypeError) as error:
        raise malformed(CLUSTER_ID, data) from error


# JSON


def encode_json(content: Mapping[str, Any]) -> bytes:
    """Bytes of a node."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def decode_json(path: str, data: bytes | None) -> dict[str, Any]:
    """The content of a node. Raises MalformedZnodeError."""
    try:
        content = json.loads(data or b"")
    except ValueError as error:
        raise malformed(path, data) from error
    if not isinstance(content, dict):
        raise malformed(path, data)
    return content


def malformed(path: str, data: bytes | None) -> MalformedZnodeError:
    """The error of a node that cannot be read."""
    shown = f"{len(data or b'')} bytes" if path.startswith(_SECRET_PATHS) else repr(data)
    return MalformedZnodeError(f"{path} holds {shown}, which cannot be read")
