"""Creation and deletion of topics, and topic defaults that do not concern segments."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LOW, boolean, class_name, integer, long, string, strings
from config.rules import RangeOr


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TopicKeys:
    """Topic creation and deletion, and topic defaults that do not concern segments."""

    alter_config_policy_class_name: str | None = class_name(importance=LOW)
    """Java class that may refuse changes of configuration."""

    auto_create_topics_enable: bool = boolean(True, importance=HIGH, acts=True)
    """Create a topic when a client asks for one that does not exist."""

    auto_leader_rebalance_enable: bool = boolean(True, importance=HIGH, acts=True)
    """Move leadership back to preferred replicas automatically."""

    compression_gzip_level: int = integer(-1, rule=RangeOr(-1, 1, 9), scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `compression.gzip.level`."""

    compression_lz4_level: int = integer(9, low=1, high=17, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `compression.lz4.level`."""

    compression_type: str = string(
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        importance=HIGH,
        scope=CLUSTER_WIDE,
        acts=True,
    )
    """Default of the topic key `compression.type`."""

    compression_zstd_level: int = integer(3, low=-131_072, high=22, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `compression.zstd.level`."""

    config_providers: tuple[str, ...] = strings(importance=LOW, scope=CLUSTER_WIDE, acts=True)
    """Names of providers that replace `${provider:path:key}` in values."""

    create_topic_policy_class_name: str | None = class_name(importance=LOW)
    """Java class that may refuse new topics."""

    default_replication_factor: int = integer(1, acts=True)
    """Replication factor of a topic created without one."""

    delete_records_purgatory_purge_interval_requests: int = integer(1)
    """Finished DeleteRecords after which their remains are cleared."""

    delete_topic_enable: bool = boolean(True, importance=HIGH, acts=True)
    """Allow topics to be deleted."""

    leader_imbalance_check_interval_seconds: int = long(300, low=1, importance=HIGH, acts=True)
    """Interval between checks for leaderships to be moved back."""

    leader_imbalance_per_broker_percentage: int = integer(10, importance=HIGH, acts=True)
    """Share of misplaced leaderships from which they are moved back."""

    max_request_partition_size_limit: int = integer(2000, low=1, acts=True)
    """Partitions described in one answer to DescribeTopicPartitions."""

    max_decompressed_message_bytes: int = integer(
        2_147_483_639, low=1, high=2_147_483_639, scope=CLUSTER_WIDE
    )
    """Default of the topic key `max.decompressed.message.bytes`."""

    message_max_bytes: int = integer(
        1_048_588, low=0, importance=HIGH, scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `max.message.bytes`."""

    min_insync_replicas: int = integer(1, low=1, importance=HIGH, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `min.insync.replicas`."""

    num_partitions: int = integer(1, low=1, acts=True)
    """Partitions of a topic created without a number of partitions."""

    unclean_leader_election_enable: bool = boolean(
        False, importance=HIGH, scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `unclean.leader.election.enable`."""

    unclean_leader_election_interval_ms: int = long(300_000, low=1, internal=True)
    """Interval between checks for leaderless partitions."""
