"""Decisions of one replica: the rules of replication, without a log, a clock or a connection.

A step takes an event (an instruction of the controller, an append, a fetch by a follower, an answer
of the leader, the passing of time) and returns `Effects`, which its owner, `broker.partitions`,
carries out in a stated order. A machine reads the offsets of its log and changes none of them.

    the controller          a follower fetches        AlterPartition is answered      time passes
        assume                  fetched_by                    decided                    tick
           |                        |                            |                        |
           v                        v                            v                        v
    role, epochs, sets       how far it is             the in-sync set is stored    one lags behind
           |                        |                            |                        |
           +-----------> high watermark = what all of the maximal set have <--- proposal -+

A leader commits an offset when each replica of the *maximal* in-sync set has everything before it.
That set is the union of the stored set and the proposed one that the controller has not answered:
the commit holds whichever of the two the next leader is elected from (KIP-497). It commits nothing
while fewer than `min.insync.replicas` are in sync (KIP-966, part 1). With replicas 1, 2 and 3, and
1 as the leader:

    log end offsets       stored      proposed    committed up to
    1: 9   2: 7   3: 4    1, 2, 3     -           4     3 holds it down
    1: 9   2: 7   3: 4    1, 2, 3     1, 2        4     until the controller has agreed
    1: 9   2: 7   3: 4    1, 2        -           7
    1: 9   2: 9   3: 9    1, 2        1, 2, 3     9     3 counts from now on

A follower never truncates its log to its high watermark (KIP-101): committed records may lie beyond
it. It truncates where its history and the leader's diverge (`truncation`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.replication.effects import NO_OFFSET, NOTHING, Effects
from broker.replication.in_sync import InSyncReplicas
from broker.replication.truncation import EpochEnds, agreed_end
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.replication.effects import Proposal, Stored
    from config.topic import TopicConfig
    from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState

logger = logging.getLogger(__name__)

ACKS_ALL: Final = -1
NO_EPOCH: Final = -1
NOBODY: Final = -1
NO_LIMIT: Final = 2**63

EXPANDING: Final = "Expanding ISR of %s from %s to %s"
SHRINKING: Final = "Shrinking ISR of %s from %s to %s"

PROPOSE_AGAIN_WHEN_DUE: Final = frozenset(
    {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA}
)
"""The controller did nothing and knows the state we know: dropped, until it is due again."""

AWAIT_NEWER_STATE: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The controller knows a newer state and will send it: until then both sets count."""


class ReplicaLog(EpochEnds, Protocol):
    """The offsets of a replica's log, read and never changed here."""

    @property
    def log_start_offset(self) -> int:
        """Of the first record that has not been deleted."""

    @property
    def high_watermark(self) -> int:
        """Everything before it is committed."""

    @property
    def latest_epoch(self) -> int:
        """Greatest leader epoch that the log has noted; -1 when there is none."""

    @property
    def config(self) -> TopicConfig:
        """Of the topic."""


class ReplicaSettings(NamedTuple):
    """Settings shared by all replicas of one broker."""

    local_id: int
    max_lag_ms: int
    """`replica.lag.time.max.ms`."""
    is_alive: Callable[[int], bool]
    """True if a broker is alive, according to the controller."""


class ReplicaMachine:
    """One replica's role, its epochs, and the in-sync set. Attributes are read-only to others."""

    __slots__ = (
        "_log",
        "_name",
        "_settings",
        "commit_limit",
        "controller_epoch",
        "in_sync",
        "is_leader",
        "is_sole",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "partition_epoch",
        "replicas",
    )

    def __init__(self, name: str, log: ReplicaLog, settings: ReplicaSettings) -> None:
        """`name` is the partition's, for log lines and errors."""
        self._name = name
        self._log = log
        self._settings = settings
        self.controller_epoch = NO_EPOCH
        self.leader_id = NOBODY
        self.leader_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        """The log's end when this broker began to lead in `leader_epoch`."""
        self.partition_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.in_sync = InSyncReplicas(settings.local_id, settings.max_lag_ms)
        self.commit_limit = NO_LIMIT
        """Bound of commits by its own disk, if appends wait for that; set by the owner."""
        self.is_leader = False
        self.is_sole = False
        """True if it leads without followers: appends are then committed without a step."""

    # The controller's word

    def is_stale(self, state: LeaderAndIsrPartitionState) -> bool:
        """Return whether a newer state is known.

        Within a leader epoch the partition epoch decides: a new controller repeats the state it
        found, possibly after its answer to an AlterPartition that changed it.
        """
        known = self.leader_epoch, self.partition_epoch
        return (state.leader_epoch, state.partition_epoch) < known

    def epoch_to_begin(self, state: LeaderAndIsrPartitionState) -> int | None:
        """The leader epoch that the log must note before `assume(state)`; None if it need not.

        It must be noted first: if the disk refused it after `assume`, this broker would lead in an
        epoch that its log lacks.
        """
        is_due = state.leader == self._settings.local_id and (
            max(self.leader_epoch, self._log.latest_epoch) < state.leader_epoch
        )
        return state.leader_epoch if is_due else None

    def assume(self, state: LeaderAndIsrPartitionState, now_ms: int) -> Effects:
        """Take the role that the controller gives. `state` must not be stale."""
        log = self._log
        is_leader = state.leader == self._settings.local_id
        is_new_epoch = state.leader_epoch > self.leader_epoch
        assert not self.is_stale(state), f"{self._name}: epochs would go back"
        assert not (is_leader and is_new_epoch) or log.latest_epoch >= state.leader_epoch, (
            f"{self._name}: leads in epoch {state.leader_epoch}, which its log has not noted"
        )
        self.controller_epoch = state.controller_epoch
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas = tuple(state.replicas)
        self.is_leader = is_leader
        self.is_sole = is_leader and len(self.replicas) == 1
        if is_leader and is_new_epoch:
            self.leader_epoch_start_offset = log.log_end_offset
        if is_leader and not self.is_sole:
            self.in_sync.lead(state, now_ms, log.log_end_offset, is_new_epoch=is_new_epoch)
        else:
            self.in_sync.stop_leading(state.isr)
        self._check_sets()
        return Effects(
            commit_up_to=self._commit_offset(now_ms) if is_leader else NO_OFFSET,
            fail_waiters=None if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            wake_readers=True,
            wake_followers=True,
            check_starts=True,
        )

    def retire(self) -> Effects:
        """The replica leaves this broker."""
        self.is_leader = self.is_sole = False
        self.leader_id = NOBODY
        self.in_sync.stop_leading(self.in_sync.committed)
        return Effects(
            fail_waiters=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            wake_readers=True,
            wake_followers=True,
            check_starts=True,
        )

    def decided(
        self, proposal: Proposal, code: ErrorCode, stored: Stored | None, now_ms: int
    ) -> Effects:
        """The controller answered a proposal; the answer to one that is void has no effect.

        PROPOSE_AGAIN_WHEN_DUE and AWAIT_NEWER_STATE say what becomes of it if it was refused. After
        any other error the same proposal is made again, however often; `AlterPartitionSender`
        pauses in between.
        """
        in_sync = self.in_sync
        if in_sync.proposal is not proposal:
            return NOTHING
        if code in PROPOSE_AGAIN_WHEN_DUE:
            in_sync.settle(in_sync.committed)
            return NOTHING
        if code is not ErrorCode.NONE or stored is None:
            return NOTHING if code in AWAIT_NEWER_STATE else Effects(proposal=proposal)
        if stored.leader_epoch != self.leader_epoch or (
            stored.partition_epoch < self.partition_epoch
        ):
            return NOTHING
        in_sync.settle(stored.in_sync)
        self.partition_epoch = stored.partition_epoch
        self._check_sets()
        # A follower that was idle and is out of sync now must fetch again to be let in.
        return Effects(commit_up_to=self._commit_offset(now_ms), wake_followers=True)

    def brokers_changed(self, now_ms: int) -> Effects:
        """A broker came or died: a commit does not wait for a dead one that is out of sync."""
        if not self.in_sync.followers:
            return NOTHING
        return Effects(commit_up_to=self._commit_offset(now_ms), check_starts=True)

    # As leader

    def check_append(self, acks: int) -> None:
        """Raise NOT_LEADER_OR_FOLLOWER, or NOT_ENOUGH_REPLICAS for what could not be committed."""
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks != ACKS_ALL:
            return
        count = len(self.in_sync.committed)
        needed = self._log.config.min_insync_replicas
        if count < len(self.replicas) and count < needed:
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self._name} has {count} in-sync replicas, min.insync.replicas is {needed}",
            )

    def appended(self, now_ms: Callable[[], int]) -> int:
        """Records were appended here. Returns up to which offset that commits, or NO_OFFSET.

        An append has no other effect but that waiting followers look again. With one in the in-sync
        set beside the leader it commits nothing, and `now_ms` is not called.
        """
        return self._commit_offset(now_ms()) if len(self.in_sync.maximal) <= 1 else NO_OFFSET

    def fetched_by(
        self, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int, now_ms: int
    ) -> Effects:
        """Note a follower's fetch of `offset`: it has everything before it.

        This is a step before or after the read, with no append between them. Raises ApiError
        NOT_LEADER_OR_FOLLOWER for a broker that has no replica.
        """
        follower = self.in_sync.followers.get(broker_id)
        if follower is None:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {broker_id} has no replica of {self._name}",
            )
        has_new_start = log_start_offset != follower.log_start_offset
        has_moved = follower.fetched(
            offset, log_start_offset, now_ms, self._log.log_end_offset, broker_epoch
        )
        proposal = self._expanded(broker_id)
        commit = self._commit_offset(now_ms) if has_moved else NO_OFFSET
        if commit == NO_OFFSET and not has_new_start and proposal is None:
            return NOTHING
        return Effects(commit_up_to=commit, check_starts=has_new_start, proposal=proposal)

    def tick(self, now_ms: int) -> Effects:
        """Time has passed: propose to go on without the followers that lag too far behind."""
        if not self.in_sync.followers:
            return NOTHING
        shrunk = self.in_sync.shrunk(self._log.log_end_offset, now_ms)
        return NOTHING if shrunk is None else Effects(proposal=self._propose(shrunk))

    def limits_changed(self, now_ms: int) -> Effects:
        """Fewer replicas may have to be in sync by the configuration, or `commit_limit` rose."""
        return Effects(commit_up_to=self._commit_offset(now_ms)) if self.is_leader else NOTHING

    @property
    def min_in_sync(self) -> int:
        """`min.insync.replicas`, or the number of replicas if there are fewer."""
        return min(self._log.config.min_insync_replicas, len(self.in_sync.followers) + 1)

    @property
    def low_watermark(self) -> int:
        """Least log start offset of the live replicas; -1 while one has not reported its own."""
        is_alive = self._settings.is_alive
        followers = self.in_sync.followers.items()
        starts = (one.log_start_offset for broker_id, one in followers if is_alive(broker_id))
        return min((self._log.log_start_offset, *starts))

    # As follower

    def heard_from_leader(self, high_watermark: int, log_start_offset: int) -> Effects:
        """The leader's answer, once its records are in the log."""
        assert not self.is_leader, f"{self._name}: a leader follows nobody"
        log = self._log
        commit = min(high_watermark, log.log_end_offset)
        has_risen = commit > log.high_watermark
        has_new_start = log.log_start_offset < log_start_offset <= max(commit, log.high_watermark)
        if not has_risen and not has_new_start:
            return NOTHING
        return Effects(
            commit_up_to=commit if has_risen else NO_OFFSET,
            start_at=log_start_offset if has_new_start else NO_OFFSET,
            wake_readers=True,
            check_starts=has_new_start,
        )

    def diverged(self, leader_epoch: int, leader_end: int) -> Effects:
        """The leader says its history parts from ours: see `truncation`."""
        assert not self.is_leader, f"{self._name}: a leader truncates nothing"
        return Effects(truncate_to=agreed_end(self._log, leader_epoch, leader_end))

    def leader_ends_at(self, offset: int) -> Effects:
        """The leader refused our fetch as out of range; this is its log end offset."""
        assert not self.is_leader, f"{self._name}: a leader truncates nothing"
        return Effects(truncate_to=offset) if offset < self._log.log_end_offset else NOTHING

    def leader_begins_at(self, offset: int) -> Effects:
        """The leader refused our fetch as out of range; this is its log start offset."""
        assert not self.is_leader, f"{self._name}: a leader truncates nothing"
        return Effects(restart_at=offset) if offset > self._log.log_end_offset else NOTHING

    # Decisions

    def _commit_offset(self, now_ms: int) -> int:
        """The offset to raise the high watermark to, or NO_OFFSET if it stays.

        That of a sole replica is the log's end always, where the high watermark may be already.
        """
        log = self._log
        if self.is_sole:
            return min(log.log_end_offset, self.commit_limit)
        in_sync = self.in_sync
        if len(in_sync.committed) < self.min_in_sync:
            return NO_OFFSET
        end = in_sync.replicated_up_to(log.log_end_offset, now_ms, self._settings.is_alive)
        end = min(end, self.commit_limit)
        if end <= log.high_watermark:
            return NO_OFFSET
        assert end <= log.log_end_offset, f"{self._name}: would commit beyond the log's end"
        assert in_sync.all_have(end), f"{self._name}: would commit {end}, which not all have"
        return end

    def _expanded(self, broker_id: int) -> Proposal | None:
        grown = self.in_sync.grown(
            broker_id, self._log.high_watermark, self.leader_epoch_start_offset
        )
        if grown is None or not self._settings.is_alive(broker_id):
            return None
        return self._propose(grown)

    def _propose(self, in_sync: tuple[int, ...]) -> Proposal:
        before = self.in_sync.committed
        is_larger = len(in_sync) > len(before)
        what = EXPANDING if is_larger else SHRINKING
        logger.info(what, self._name, list(before), list(in_sync))
        proposal = self.in_sync.propose(in_sync, self.leader_epoch, self.partition_epoch)
        self._check_sets()
        return proposal

    def _check_sets(self) -> None:
        """Assert the invariants of the sets after each step that changes them."""
        in_sync = self.in_sync
        counting = set(in_sync.committed)
        if in_sync.proposal is not None:
            assert self.is_leader, f"{self._name}: proposes an in-sync set and does not lead"
            assert in_sync.proposal.leader_epoch == self.leader_epoch, (
                f"{self._name}: proposal of leader epoch {in_sync.proposal.leader_epoch}, "
                f"not {self.leader_epoch}"
            )
            counting |= set(in_sync.proposal.in_sync)
        assert in_sync.maximal == counting, f"{self._name}: {in_sync.maximal} is not {counting}"
        assert self.is_leader or not in_sync.followers, f"{self._name}: follows and has followers"
