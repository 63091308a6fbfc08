"""Broker or controller to the active controller: registrations and heartbeats (KIP-631)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, int64, string, uint16, uuid
from protocol.schema import Request, Response, Struct

if TYPE_CHECKING:
    from uuid import UUID


class BrokerRegistrationRequest(
    Request, key=ApiKey.BROKER_REGISTRATION, versions="0-4", flexible="0+"
):
    """A broker registers with the controller (KIP-631)."""

    class Listener(Struct):
        """Address of one listener."""

        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class Feature(Struct):
        """Levels of one feature that the node supports."""

        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: UUID = uuid()
    """Drawn at each start."""
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable="0+")
    is_migrating_zk_broker: bool = boolean("1+", default=False)
    log_dirs: list[UUID] = array(uuid, "2+", default=())
    """Log directories that are online (KIP-858)."""
    previous_broker_epoch: int = int64("3+", default=-1)
    """Epoch at the last clean shutdown; -1 if it was not clean."""


class BrokerRegistrationResponse(
    Response, request=BrokerRegistrationRequest, versions="0-4", flexible="0+"
):
    """Answer to BrokerRegistrationRequest."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)
    """-1 if the broker is not registered."""


class BrokerHeartbeatRequest(Request, key=ApiKey.BROKER_HEARTBEAT, versions="0-2", flexible="0+"):
    """A broker tells the controller that it is alive, and what it wants (KIP-631)."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    """Highest offset of the metadata log that the broker has applied."""
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[UUID] = array(uuid, "1+", default=(), tag=0)
    """Log directories that have failed."""
    cordoned_log_dirs: list[UUID] | None = array(uuid, "2+", default=None, nullable="2+", tag=1)
    """Log directories that take no new replicas; null while the broker recovers its logs."""


class BrokerHeartbeatResponse(
    Response, request=BrokerHeartbeatRequest, versions="0-2", flexible="0+"
):
    """Answer to BrokerHeartbeatRequest."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean(default=False)
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()


class ControllerRegistrationRequest(
    Request, key=ApiKey.CONTROLLER_REGISTRATION, versions="0", flexible="0+"
):
    """A controller registers with the active one (KIP-919)."""

    class Listener(Struct):
        """Address of one listener."""

        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class Feature(Struct):
        """Levels of one feature that the node supports."""

        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    controller_id: int = int32()
    incarnation_id: UUID = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)


class ControllerRegistrationResponse(
    Response, request=ControllerRegistrationRequest, versions="0", flexible="0+"
):
    """Answer to ControllerRegistrationRequest."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class AssignReplicasToDirsRequest(
    Request, key=ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+"
):
    """A broker tells the controller in which log directories its replicas are (KIP-858)."""

    class Directory(Struct):
        """Replicas in one log directory."""

        class Topic(Struct):
            """Partitions of one topic."""

            class Partition(Struct):
                """One partition."""

                partition_index: int = int32()

            topic_id: UUID = uuid()
            partitions: list[Partition] = array(Partition)

        id: UUID = uuid()
        topics: list[Topic] = array(Topic)

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[Directory] = array(Directory)


class AssignReplicasToDirsResponse(
    Response, request=AssignReplicasToDirsRequest, versions="0", flexible="0+"
):
    """Answer to AssignReplicasToDirsRequest."""

    class Directory(Struct):
        """Replicas in one log directory."""

        class Topic(Struct):
            """Partitions of one topic."""

            class Partition(Struct):
                """One partition."""

                partition_index: int = int32()
                error_code: int = int16()

            topic_id: UUID = uuid()
            partitions: list[Partition] = array(Partition)

        id: UUID = uuid()
        topics: list[Topic] = array(Topic)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[Directory] = array(Directory)
