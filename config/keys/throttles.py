"""Throttles of catching-up replicas (KIP-73). Set by tools, never in a file."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import DYNAMIC_ONLY, LONG_MAX, long


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ThrottleKeys:
    """Replication throttles."""

    leader_replication_throttled_rate: int = long(LONG_MAX, low=0, scope=DYNAMIC_ONLY, acts=True)
    """Bytes a second sent to followers of the replicas that a topic's key throttles."""

    follower_replication_throttled_rate: int = long(LONG_MAX, low=0, scope=DYNAMIC_ONLY, acts=True)
    """Bytes a second fetched for the replicas that a topic's key throttles."""

    replica_alter_log_dirs_io_max_bytes_per_second: int = long(
        LONG_MAX, low=0, scope=DYNAMIC_ONLY, acts=True
    )
    """Bytes a second with which replicas move between log directories."""
