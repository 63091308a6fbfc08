"""Records of `__cluster_metadata`: registrations of brokers and controllers (KIP-631, KIP-919)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.fields import array, boolean, int8, int16, int32, int64, string, uint16, uuid
from protocol.schema import MetadataRecord, Struct

if TYPE_CHECKING:
    from uuid import UUID


class RegisteredEndPoint(Struct):
    """Address of one listener of a node."""

    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()
    """0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


class RegisteredFeature(Struct):
    """Levels of one feature that a node supports."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class RegisterBrokerRecord(MetadataRecord, record_type=0, versions="0-4", flexible="0+"):
    """The registration of a broker, in place of an earlier one."""

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean("2+", default=False)
    incarnation_id: UUID = uuid()
    """Drawn by the broker at each start."""
    broker_epoch: int = int64()
    """Offset of the registration in the log."""
    end_points: list[RegisteredEndPoint] = array(RegisteredEndPoint)
    features: list[RegisteredFeature] = array(RegisteredFeature)
    rack: str | None = string(nullable="0+")
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean("1+", default=False)
    log_dirs: list[UUID] = array(uuid, "3+", tag=0)
    """Log directories that are online (KIP-858)."""
    cordoned_log_dirs: list[UUID] | None = array(uuid, "4+", default=None, nullable="4+", tag=1)
    """Log directories that take no new replicas; null until a heartbeat lists them."""


class UnregisterBrokerRecord(MetadataRecord, record_type=1, versions="0", flexible="0+"):
    """The removal of a broker's registration."""

    broker_id: int = int32()
    broker_epoch: int = int64()


class FenceBrokerRecord(MetadataRecord, record_type=7, versions="0", flexible="0+"):
    """The fencing of a broker, as written before BrokerRegistrationChangeRecord was."""

    id: int = int32()
    epoch: int = int64()


class UnfenceBrokerRecord(MetadataRecord, record_type=8, versions="0", flexible="0+"):
    """The end of a broker's fencing, as written before BrokerRegistrationChangeRecord was."""

    id: int = int32()
    epoch: int = int64()


class BrokerRegistrationChangeRecord(MetadataRecord, record_type=17, versions="0-3", flexible="0+"):
    """A change of a broker's registration."""

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    """1 fences, -1 unfences, 0 leaves it as it is."""
    in_controlled_shutdown: int = int8("1+", tag=1)
    """1 if a controlled shutdown begins, 0 leaves it as it is."""
    log_dirs: list[UUID] = array(uuid, "2+", tag=2)
    """Log directories that are online; empty leaves them as they are."""
    cordoned_log_dirs: list[UUID] | None = array(uuid, "3+", default=None, nullable="3+", tag=3)
    """Null leaves them as they are."""


class RegisterControllerRecord(MetadataRecord, record_type=27, versions="0", flexible="0+"):
    """The registration of a controller, in place of an earlier one (KIP-919)."""

    controller_id: int = int32()
    incarnation_id: UUID = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[RegisteredEndPoint] = array(RegisteredEndPoint)
    features: list[RegisteredFeature] = array(RegisteredFeature)


class UnregisterControllerRecord(MetadataRecord, record_type=29, versions="0", flexible="0+"):
    """The removal of a controller's registration."""

    controller_id: int = int32()
