"""Choice of the replica for a consumer to read from: one in its own rack, if any (KIP-392).

The leader names it in its fetch response, and the consumer goes on with that follower. It comes
back when the follower refuses it, and after `metadata.max.age.ms` in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.partitions.partition import Partition

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The value of `replica.selector.class` by which clients are sent to followers."""


def follower_in_rack(
    partition: Partition, rack: str, offset: int, rack_of: Callable[[int], str | None]
) -> int | None:
    """The follower that a consumer in `rack` should read `offset` from; None for the leader.

    Only a follower that is in sync and has the offset: one that lags would keep its readers back.
    `rack_of` returns a live broker's rack. Of several, the one with the greatest LEO, then the one
    that caught up last.
    """
    if rack_of(partition.leader_id) == rack:
        return None
    candidates = [
        follower
        for follower in partition.machine.in_sync.followers.values()
        if follower.broker_id in partition.in_sync_replicas
        and 0 <= follower.log_start_offset <= offset <= follower.log_end_offset
        and rack_of(follower.broker_id) == rack
    ]
    if not candidates:
        return None
    best = max(candidates, key=lambda one: (one.log_end_offset, one.last_caught_up_ms))
    return best.broker_id
