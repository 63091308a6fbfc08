"""Identity of the broker, its start and shutdown."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LONG_MAX, boolean, integer, long, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class IdentityKeys:
    """Broker identity, start and shutdown."""

    background_threads: int = integer(10, low=1, importance=HIGH, scope=CLUSTER_WIDE)
    """Threads Apache Kafka uses for background work."""

    broker_id: int = integer(-1, importance=HIGH, acts=True)
    """This broker's number in the cluster; -1 has one generated, or takes the one on disk."""

    broker_id_generation_enable: bool = boolean(True, acts=True)
    """Generate an id for a broker without `broker.id`."""

    broker_rack: str | None = string(None, acts=True)
    """Rack of the broker; replicas are spread over racks."""

    controlled_shutdown_enable: bool = boolean(True, acts=True)
    """Hand leaderships over to other brokers before stopping."""

    controlled_shutdown_max_retries: int = integer(3, acts=True)
    """Number of attempts to hand leaderships over."""

    controlled_shutdown_retry_backoff_ms: int = long(5000, acts=True)
    """Wait before the hand-over is tried again."""

    node_id: int = integer(-1, importance=HIGH, acts=True)
    """Synonym of `broker.id`, named so where metadata is kept in a Raft quorum."""

    reserved_broker_max_id: int = integer(1000, low=0, acts=True)
    """Largest `broker.id` a user may choose; generated ones are larger."""

    server_max_startup_time_ms: int = long(LONG_MAX, low=0, internal=True)
    """Time after which a start that has not finished is given up."""

    unstable_api_versions_enable: bool = boolean(False, importance=HIGH, internal=True)
    """Offer request versions that are still under development."""

    unstable_feature_versions_enable: bool = boolean(False, importance=HIGH, internal=True)
    """Offer feature versions that are still under development."""
