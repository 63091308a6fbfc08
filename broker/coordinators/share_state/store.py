"""The port by which leaders of partitions read and write the state of share-partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.runtime.deferred import Deferred
    from coordinator.share_state.state import SharePartition, StateChange, StoredState


class ShareStateStore(Protocol):
    """Share coordinators, wherever they are. `BrokerServices.share_state`.

    Requests to a coordinator that is unreachable, loading or moved are retried for a while; after
    that a Deferred fails with the error. Other errors fail it at once: ApiError
    FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, INVALID_REQUEST without an initialised state, and
    UNKNOWN_TOPIC_OR_PARTITION.
    """

    def read(self, partition: SharePartition, leader_epoch: int) -> Deferred[StoredState]:
        """The state as it is stored; from now on, leaders of earlier epochs are refused."""
        ...

    def write(self, partition: SharePartition, change: StateChange) -> Deferred[None]:
        """Store a change; complete once it is committed. Changes of one partition keep order."""
        ...
