"""Records of `__cluster_metadata`: configurations, features, producer ids, and the log's own."""

from __future__ import annotations

from protocol.fields import int8, int16, int32, int64, string
from protocol.schema import MetadataRecord


class ConfigRecord(MetadataRecord, record_type=4, versions="0", flexible="0+"):
    """One configuration of one resource, set or removed."""

    resource_type: int = int8()
    """2 topic, 4 broker, 16 client metrics, 32 group."""
    resource_name: str = string()
    """Empty for the default of all brokers."""
    name: str = string()
    value: str | None = string(nullable="0+")
    """Null removes it."""


class FeatureLevelRecord(MetadataRecord, record_type=12, versions="0", flexible="0+"):
    """The finalised level of a feature (KIP-584); `metadata.version` comes first in each log."""

    name: str = string()
    feature_level: int = int16()
    """0 removes it."""


class ProducerIdsRecord(MetadataRecord, record_type=15, versions="0", flexible="0+"):
    """A block of producer ids, handed to a broker (KIP-730)."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()
    """First id of the block after it."""


class NoOpRecord(MetadataRecord, record_type=20, versions="0", flexible="0+"):
    """Nothing: it moves the high watermark of an idle log on (KIP-835)."""


class BeginTransactionRecord(MetadataRecord, record_type=23, versions="0", flexible="0+"):
    """The first of records that count together or not at all (KIP-868)."""

    name: str | None = string(default=None, nullable="0+", tag=0)


class EndTransactionRecord(MetadataRecord, record_type=24, versions="0", flexible="0+"):
    """The records since BeginTransactionRecord count."""


class AbortTransactionRecord(MetadataRecord, record_type=25, versions="0", flexible="0+"):
    """The records since BeginTransactionRecord do not count."""

    reason: str | None = string(default=None, nullable="0+", tag=0)


class ZkMigrationStateRecord(MetadataRecord, record_type=21, versions="0", flexible="0+"):
    """The stage of a migration from ZooKeeper (KIP-866); Kafka 4 ignores it."""

    zk_migration_state: int = int8()
    """0 none, 1 migration, 2 pre-migration, 3 post-migration."""
