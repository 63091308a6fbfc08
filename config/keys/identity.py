"""Who this broker is, and how it starts and stops."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LONG_MAX, boolean, integer, long, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class IdentityKeys:
    """Who this broker is, and how it starts and stops."""

    background_threads: int = integer(10, low=1, importance=HIGH, scope=CLUSTER_WIDE)

    broker_id: int = integer(-1, importance=HIGH)

    broker_id_generation_enable: bool = boolean(True)

    broker_rack: str | None = string(None)

    controlled_shutdown_enable: bool = boolean(True)

    controlled_shutdown_max_retries: int = integer(3)

    controlled_shutdown_retry_backoff_ms: int = long(5000)

    node_id: int = integer(-1, importance=HIGH)

    reserved_broker_max_id: int = integer(1000, low=0)

    server_max_startup_time_ms: int = long(LONG_MAX, low=0, internal=True)

    unstable_api_versions_enable: bool = boolean(False, importance=HIGH, internal=True)

    unstable_feature_versions_enable: bool = boolean(False, importance=HIGH, internal=True)
