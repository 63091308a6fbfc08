"""Registered brokers and controllers in the image, and the changes of brokers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.image.errors import ReplayError, UnwritableMetadataError
from controller.image.map_delta import MapDelta
from protocol.metadata_log.node_records import (
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RegisteredEndPoint,
    RegisteredFeature,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from protocol.metadata_log.node_records import (
        BrokerRegistrationChangeRecord,
        UnfenceBrokerRecord,
        UnregisterBrokerRecord,
        UnregisterControllerRecord,
    )

CONTROLLED_SHUTDOWN_VERSION: Final = 1
MIGRATION_VERSION: Final = 2
LOG_DIRS_VERSION: Final = 3
CORDONED_VERSION: Final = 4


class Endpoint(NamedTuple):
    """Address of one listener."""

    listener: str
    host: str
    port: int
    security_protocol: int


class FeatureRange(NamedTuple):
    """Levels of one feature that a node supports."""

    name: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Broker:
    """The registration of a broker (`BrokerRegistration`)."""

    broker_id: int
    epoch: int
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...]
    rack: str | None
    is_fenced: bool
    is_in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    log_dirs: tuple[UUID, ...]
    """Log directories that are online."""
    cordoned_log_dirs: tuple[UUID, ...] | None
    """Log directories that take no new replicas; None until a heartbeat lists them."""

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> Broker:
        """Make the broker that a record registers."""
        cordoned = record.cordoned_log_dirs
        return cls(
            broker_id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
            rack=record.rack,
            is_fenced=record.fenced,
            is_in_controlled_shutdown=record.in_controlled_shutdown,
            is_migrating_zk_broker=record.is_migrating_zk_broker,
            log_dirs=tuple(record.log_dirs),
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
        )

    def changed_by(self, record: BrokerRegistrationChangeRecord) -> Broker:
        """The registration after a change."""
        cordoned = record.cordoned_log_dirs
        return replace(
            self,
            is_fenced=record.fenced > 0 if record.fenced else self.is_fenced,
            is_in_controlled_shutdown=bool(
                record.in_controlled_shutdown or self.is_in_controlled_shutdown
            ),
            log_dirs=tuple(record.log_dirs) or self.log_dirs,
            cordoned_log_dirs=self.cordoned_log_dirs if cordoned is None else tuple(cordoned),
        )

    def to_record(self, version: int) -> RegisterBrokerRecord:
        """The record of a snapshot; raises UnwritableMetadataError if the version lacks a field."""
        self._check_writable(version)
        record = RegisterBrokerRecord(
            broker_id=self.broker_id,
            broker_epoch=self.epoch,
            incarnation_id=self.incarnation_id,
            end_points=_endpoint_records(self.endpoints),
            features=_feature_records(self.features),
            rack=self.rack,
            fenced=self.is_fenced,
            in_controlled_shutdown=self.is_in_controlled_shutdown,
            is_migrating_zk_broker=self.is_migrating_zk_broker,
            log_dirs=list(self.log_dirs),
        )
        if self.cordoned_log_dirs is not None:
            record.cordoned_log_dirs = list(self.cordoned_log_dirs)
        return record

    def _check_writable(self, version: int) -> None:
        for needed, value, name in (
            (CONTROLLED_SHUTDOWN_VERSION, self.is_in_controlled_shutdown, "controlled shutdown"),
            (MIGRATION_VERSION, self.is_migrating_zk_broker, "migration from ZooKeeper"),
            (LOG_DIRS_VERSION, self.log_dirs, "log directories"),
            (CORDONED_VERSION, self.cordoned_log_dirs is not None, "cordoned log directories"),
        ):
            if value and version < needed:
                raise UnwritableMetadataError(
                    f"broker {self.broker_id}: RegisterBrokerRecord {version} has no {name}"
                )


@dataclass(frozen=True, slots=True)
class Controller:
    """The registration of a controller (KIP-919)."""

    controller_id: int
    incarnation_id: UUID
    is_zk_migration_ready: bool
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...]

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> Controller:
        """Make the controller that a record registers."""
        return cls(
            controller_id=record.controller_id,
            incarnation_id=record.incarnation_id,
            is_zk_migration_ready=record.zk_migration_ready,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
        )

    def to_record(self) -> RegisterControllerRecord:
        """The record of a snapshot."""
        return RegisterControllerRecord(
            controller_id=self.controller_id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.is_zk_migration_ready,
            end_points=_endpoint_records(self.endpoints),
            features=_feature_records(self.features),
        )


class BrokersDelta(MapDelta[int, Broker]):
    """Changes of brokers, by id."""

    __slots__ = ()

    def register(self, record: RegisterBrokerRecord) -> None:
        """Replay RegisterBrokerRecord, which replaces an earlier registration."""
        self.set(record.broker_id, Broker.from_record(record))

    def unregister(self, record: UnregisterBrokerRecord) -> None:
        """Replay UnregisterBrokerRecord."""
        self._at_epoch(record, record.broker_id, record.broker_epoch)
        self.remove(record.broker_id)

    def change(self, record: BrokerRegistrationChangeRecord) -> None:
        """Replay BrokerRegistrationChangeRecord."""
        broker = self._at_epoch(record, record.broker_id, record.broker_epoch)
        self.set(broker.broker_id, broker.changed_by(record))

    def fence(self, record: FenceBrokerRecord | UnfenceBrokerRecord) -> None:
        """Replay FenceBrokerRecord or UnfenceBrokerRecord."""
        broker = self._at_epoch(record, record.id, record.epoch)
        self.set(record.id, replace(broker, is_fenced=isinstance(record, FenceBrokerRecord)))

    def _at_epoch(self, record: object, broker_id: int, epoch: int) -> Broker:
        broker = self.get(broker_id)
        shown = f"{type(record).__name__} of broker {broker_id}"
        if broker is None:
            raise ReplayError(f"{shown}: not registered")
        if broker.epoch != epoch:
            raise ReplayError(f"{shown}: epoch {epoch}, but registered with {broker.epoch}")
        return broker


class ControllersDelta(MapDelta[int, Controller]):
    """Changes of controllers, by id."""

    __slots__ = ()

    def register(self, record: RegisterControllerRecord) -> None:
        """Replay RegisterControllerRecord, which replaces an earlier registration."""
        self.set(record.controller_id, Controller.from_record(record))

    def unregister(self, record: UnregisterControllerRecord) -> None:
        """Replay UnregisterControllerRecord."""
        number = record.controller_id
        if self.get(number) is None:
            raise ReplayError(f"UnregisterControllerRecord of {number}: not registered")
        self.remove(number)


def _endpoints(end_points: Iterable[RegisteredEndPoint]) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(one.name, one.host, one.port, one.security_protocol) for one in end_points
    )


def _features(features: Iterable[RegisteredFeature]) -> tuple[FeatureRange, ...]:
    # By name: the order in a record is that of a hash map of Apache's, and another each time.
    return tuple(
        sorted(
            FeatureRange(one.name, one.min_supported_version, one.max_supported_version)
            for one in features
        )
    )


def _endpoint_records(endpoints: Iterable[Endpoint]) -> list[RegisteredEndPoint]:
    return [
        RegisteredEndPoint(
            name=one.listener, host=one.host, port=one.port, security_protocol=one.security_protocol
        )
        for one in endpoints
    ]


def _feature_records(features: Iterable[FeatureRange]) -> list[RegisteredFeature]:
    return [
        RegisteredFeature(
            name=one.name, min_supported_version=one.least, max_supported_version=one.most
        )
        for one in features
    ]
