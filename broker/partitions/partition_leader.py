"""The leader's side of replication, for one partition that has followers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.replication.in_sync import InSyncReplicas, Proposal
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.partitions.partition import Partition
    from broker.partitions.throttle import Throttle
    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers
    from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState

logger = logging.getLogger(__name__)

RETURNED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller did nothing and knows the state we know: propose again when it is due."""

SUPERSEDED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The controller knows a newer state and will tell: until then both sets count."""


class Stored(NamedTuple):
    """A partition's state as the controller has stored it."""

    in_sync: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class InSyncChanges(Protocol):
    """Carries proposals to the controller, and what it says of them back to `decided`."""

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """Ask the controller to store a set; `partition.leading.decided` hears of it, once."""


class PartitionServices(NamedTuple):
    """What all partitions of one broker share."""

    local_id: int
    timers: Timers
    clock: Clock
    changes: InSyncChanges
    is_alive: Callable[[int], bool]
    """Whether a broker is alive, as far as the controller has told."""
    max_lag_ms: int
    """`replica.lag.time.max.ms`."""
    throttle: Throttle | None = None
    """Holds up followers that are far behind, when topics and this broker say so."""


class PartitionLeader:
    """What a leader does about its followers. `Partition.leading`, while there is one."""

    __slots__ = ("_partition", "_surroundings", "in_sync")

    def __init__(self, partition: Partition, surroundings: PartitionServices) -> None:
        self._partition = partition
        self._surroundings = surroundings
        self.in_sync = InSyncReplicas(surroundings.local_id, surroundings.max_lag_ms)

    def assume(self, state: LeaderAndIsrPartitionState, *, is_new_epoch: bool) -> None:
        """The controller says who the replicas are, and which are in sync."""
        self.in_sync.lead(
            state, self._now_ms(), self._partition.log.log_end_offset, is_new_epoch=is_new_epoch
        )
        self.raise_high_watermark()

    def fetched(self, broker_id: int, broker_epoch: int, offset: int, log_start: int) -> None:
        """A follower asks for `offset`, so it has all before it. Call it before reading for it.

        Raises ApiError NOT_LEADER_OR_FOLLOWER for a broker that has no replica.
        """
        follower = self.in_sync.followers.get(broker_id)
        if follower is None:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {broker_id} has no replica of "
                f"{self._partition.topic}-{self._partition.index}",
            )
        log = self._partition.log
        if log_start != follower.log_start_offset:
            self._partition.check_starts()
        has_moved = follower.fetched(
            offset, log_start, self._now_ms(), log.log_end_offset, broker_epoch
        )
        grown = self.in_sync.grown(
            broker_id, log.high_watermark, self._partition.leader_epoch_start_offset
        )
        if grown is not None and self._surroundings.is_alive(broker_id):
            self._propose(grown)
        if has_moved:
            self.raise_high_watermark()

    @property
    def throttle(self) -> Throttle | None:
        """What bounds how fast followers get this partition, if anything does."""
        throttle = self._surroundings.throttle
        return throttle if throttle is not None and throttle.covers(self._partition) else None

    def check_lag(self) -> None:
        """Propose to go on without the followers that stay behind; call it by the clock."""
        shrunk = self.in_sync.shrunk(self._partition.log.log_end_offset, self._now_ms())
        if shrunk is not None:
            self._propose(shrunk)

    def appended(self) -> None:
        """Records were appended here. That commits nothing while others count."""
        if len(self.in_sync.maximal) <= 1:
            self.raise_high_watermark()

    def raise_high_watermark(self) -> None:
        """Commit what all replicas that count have; nothing while too few are in sync (KIP-966)."""
        log = self._partition.log
        if len(self.in_sync.committed) < self.min_in_sync:
            return
        end = self.in_sync.common_end(
            log.log_end_offset, self._now_ms(), self._surroundings.is_alive
        )
        self._partition.commit_up_to(end)

    @property
    def min_in_sync(self) -> int:
        """`min.insync.replicas`, or the number of replicas if there are fewer."""
        wanted = self._partition.log.config.min_insync_replicas
        return min(wanted, len(self.in_sync.followers) + 1)

    @property
    def low_watermark(self) -> int:
        """The least log start offset of the replicas that live, -1 while one has not told its."""
        is_alive = self._surroundings.is_alive
        followers = self.in_sync.followers.items()
        starts = (one.log_start_offset for broker_id, one in followers if is_alive(broker_id))
        return min((self._partition.log.log_start_offset, *starts))

    def note_brokers(self) -> None:
        """A broker came or died: one that is dead is not waited for."""
        self.raise_high_watermark()
        self._partition.check_starts()

    def decided(self, proposal: Proposal, code: ErrorCode, stored: Stored | None = None) -> None:
        """The controller answered a proposal; an answer to one that is void is ignored."""
        if self.in_sync.proposal is not proposal:
            return
        partition = self._partition
        if code is ErrorCode.NONE and stored is not None:
            if (
                stored.leader_epoch != partition.leader_epoch
                or stored.partition_epoch < partition.partition_epoch
            ):
                return
            self.in_sync.settle(stored.in_sync)
            partition.in_sync_changed(stored.in_sync, stored.partition_epoch)
            self.raise_high_watermark()
        elif code in RETURNED:
            self.in_sync.settle(self.in_sync.committed)
        elif code not in SUPERSEDED:
            self._surroundings.changes.propose(partition, proposal)

    def _propose(self, in_sync: tuple[int, ...]) -> None:
        partition = self._partition
        is_growing = len(in_sync) > len(self.in_sync.committed)
        logger.info(
            "%s ISR of %s-%d from %s to %s",
            "Expanding" if is_growing else "Shrinking",
            partition.topic,
            partition.index,
            list(self.in_sync.committed),
            list(in_sync),
        )
        proposal = self.in_sync.propose(in_sync, partition.leader_epoch, partition.partition_epoch)
        self._surroundings.changes.propose(partition, proposal)

    def _now_ms(self) -> int:
        return self._surroundings.clock.monotonic_ms()
