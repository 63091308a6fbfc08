"""How topics come to be, and the defaults they start from that are not about segments."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LOW, boolean, class_name, integer, long, string, strings
from config.rules import RangeOr


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TopicKeys:
    """How topics come to be, and the defaults they start from that are not about segments."""

    alter_config_policy_class_name: str | None = class_name(importance=LOW)

    auto_create_topics_enable: bool = boolean(True, importance=HIGH)

    auto_leader_rebalance_enable: bool = boolean(True, importance=HIGH)

    compression_gzip_level: int = integer(-1, rule=RangeOr(-1, 1, 9), scope=CLUSTER_WIDE)

    compression_lz4_level: int = integer(9, low=1, high=17, scope=CLUSTER_WIDE)

    compression_type: str = string(
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        importance=HIGH,
        scope=CLUSTER_WIDE,
    )

    compression_zstd_level: int = integer(3, low=-131_072, high=22, scope=CLUSTER_WIDE)

    config_providers: tuple[str, ...] = strings(importance=LOW, scope=CLUSTER_WIDE)

    create_topic_policy_class_name: str | None = class_name(importance=LOW)

    default_replication_factor: int = integer(1)

    delete_records_purgatory_purge_interval_requests: int = integer(1)

    delete_topic_enable: bool = boolean(True, importance=HIGH)

    leader_imbalance_check_interval_seconds: int = long(300, low=1, importance=HIGH)

    leader_imbalance_per_broker_percentage: int = integer(10, importance=HIGH)

    max_request_partition_size_limit: int = integer(2000, low=1)

    message_max_bytes: int = integer(1_048_588, low=0, importance=HIGH, scope=CLUSTER_WIDE)

    min_insync_replicas: int = integer(1, low=1, importance=HIGH, scope=CLUSTER_WIDE)

    num_partitions: int = integer(1, low=1)

    unclean_leader_election_enable: bool = boolean(False, importance=HIGH, scope=CLUSTER_WIDE)

    unclean_leader_election_interval_ms: int = long(300_000, low=1, internal=True)
