"""The consequences of a delta for the replicas of one broker (`LocalReplicaChanges`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.image.topics import PartitionChange, TopicsDelta


@dataclass(frozen=True, slots=True)
class LocalReplicaChanges:
    """Replicas of one broker to delete, to lead and to follow, in this order.

    Only the last state in the delta counts. A topic that was deleted and created again under its
    name is among `deleted` with its old id and among the others with its new one.
    """

    deleted: list[PartitionChange] = field(default_factory=list)
    leaders: list[PartitionChange] = field(default_factory=list)
    """Led by the broker, and the partition epoch is another: also if it led before."""
    elected: list[PartitionChange] = field(default_factory=list)
    """The `leaders` whose leader epoch changed too."""
    followers: list[PartitionChange] = field(default_factory=list)
    """Led by another broker, or by none, and the partition epoch is another."""
    directories: list[PartitionChange] = field(default_factory=list)
    """Partitions whose replica on the broker has another log directory than before."""


def local_replica_changes(topics: TopicsDelta, broker_id: int) -> LocalReplicaChanges:
    """Sort the partition changes of a delta by what one broker has to do."""
    local = LocalReplicaChanges()
    for change in topics.partition_changes():
        before, after = change.before, change.after
        if after is None or broker_id not in after.replicas:
            if before is not None and broker_id in before.replicas:
                local.deleted.append(change)
            continue
        if before is None or before.partition_epoch != after.partition_epoch:
            (local.leaders if after.leader == broker_id else local.followers).append(change)
        is_led = after.leader == broker_id
        if is_led and (before is None or before.leader_epoch != after.leader_epoch):
            local.elected.append(change)
        if before is None or before.directory_of(broker_id) != after.directory_of(broker_id):
            local.directories.append(change)
    return local
