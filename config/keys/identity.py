"""Who this broker is, and how it starts and stops."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LONG_MAX, boolean, integer, long, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class IdentityKeys:
    """Who this broker is, and how it starts and stops."""

    background_threads: int = integer(10, low=1, importance=HIGH, scope=CLUSTER_WIDE)
    """Threads Apache Kafka uses for background work."""

    broker_id: int = integer(-1, importance=HIGH, acts=True)
    """This broker's number in the cluster; -1 has one generated, or takes the one on disk."""

    broker_id_generation_enable: bool = boolean(True, acts=True)
    """Whether a broker without `broker.id` is given one."""

    broker_rack: str | None = string(None, acts=True)
    """Where the broker stands; replicas are spread over racks."""

    controlled_shutdown_enable: bool = boolean(True, acts=True)
    """Whether a stopping broker first hands its leaderships to others."""

    controlled_shutdown_max_retries: int = integer(3, acts=True)
    """How often the hand-over is tried."""

    controlled_shutdown_retry_backoff_ms: int = long(5000, acts=True)
    """Wait before the hand-over is tried again."""

    node_id: int = integer(-1, importance=HIGH, acts=True)
    """What `broker.id` is called where metadata is kept in a Raft quorum; a synonym here."""

    reserved_broker_max_id: int = integer(1000, low=0, acts=True)
    """Largest `broker.id` a user may choose; generated ones are larger."""

    server_max_startup_time_ms: int = long(LONG_MAX, low=0, internal=True)
    """Time after which a start that has not finished is given up."""

    unstable_api_versions_enable: bool = boolean(False, importance=HIGH, internal=True)
    """Whether request versions still under development are offered."""

    unstable_feature_versions_enable: bool = boolean(False, importance=HIGH, internal=True)
    """Whether feature versions still under development are offered."""
