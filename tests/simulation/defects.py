"""Mistakes that replication could have; the simulation must find each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cluster.control_request_queue import ControlRequestQueue, ControlRequests
from broker.handlers.brokers import control
from broker.partitions.commit_waiters import COMMITTED, CommitWaiter
from broker.partitions.durability import Durability
from broker.partitions.partition import Partition
from broker.replica_fetchers import fetcher
from broker.replica_fetchers.replica_fetchers import ReplicaFetchers
from controller.active_controller import ActiveController
from controller.brokers.election import FencedStore
from controller.partitions.in_sync_changes import InSyncChanges
from protocol.errors import ErrorCode
from storage.log.flushes import Flushes, RecordsFlush
from tests.simulation.answer_defects import ANSWER_DEFECTS
from tests.simulation.delay_defects import DELAY_DEFECTS
from tests.simulation.group_defects import GROUP_DEFECTS
from tests.simulation.machine.disk import SimulatedDisk
from tests.simulation.transaction_defects import TRANSACTION_DEFECTS

if TYPE_CHECKING:
    from collections.abc import Callable


def truncate_at_the_high_watermark() -> None:
    """A new follower cuts its log where it believes the committed part to end (before KIP-101)."""
    follow = ReplicaFetchers.partition_changed

    def cut_and_follow(self: ReplicaFetchers, partition: Partition) -> None:
        if not partition.is_leader and partition.leader_id >= 0:
            partition.log.truncate_to(partition.log.high_watermark)
        follow(self, partition)

    ReplicaFetchers.partition_changed = cut_and_follow  # type: ignore[method-assign]


def take_any_in_sync_set() -> None:
    """The controller stores proposed sets without looking at their epochs."""
    decide = InSyncChanges._decide

    def decide_blindly(self: InSyncChanges, leader: int, at: Any, wanted: Any) -> Any:
        current = self._context.leadership.get(at)
        if current is not None:
            wanted.leader_epoch = current.state.leader_epoch
            wanted.partition_epoch = current.partition_epoch
            leader = current.state.leader
        return decide(self, leader, at, wanted)

    InSyncChanges._decide = decide_blindly  # type: ignore[method-assign]


def acknowledge_before_the_high_watermark() -> None:
    """Appends with acks=all are answered once the leader has them."""

    def at_once(
        self: Partition, offset: int, callback: Callable[[ErrorCode], None]
    ) -> CommitWaiter:
        callback(ErrorCode.NONE)
        return COMMITTED

    Partition.when_committed = at_once  # type: ignore[method-assign]


def fence_no_writes() -> None:
    """Write as controller without checking its epoch (`/controller_epoch`)."""

    async def write_many(self: FencedStore, transactions: Any) -> Any:
        return await self._store.multi_many(list(transactions))

    FencedStore.write_many = write_many  # type: ignore[method-assign]


def fence_no_controllers() -> None:
    """Brokers obey whatever controller speaks to them."""
    apply = ControlRequestQueue._apply

    async def obey(self: ControlRequestQueue, request: Any, applied: ControlRequests) -> Any:
        self.controller_epoch = -1
        return await apply(self, request, applied)

    ControlRequestQueue._apply = obey  # type: ignore[method-assign]


def fence_no_lives() -> None:
    """Accept requests meant for, or sent by, an earlier incarnation of a broker."""
    apply = InSyncChanges.apply

    async def apply_from_any(self: InSyncChanges, request: Any) -> Any:
        broker = self._context.live_brokers.get(request.broker_id)
        request.broker_epoch = -1 if broker is None else broker.epoch
        return await apply(self, request)

    control._is_for_earlier_life = lambda context, broker_epoch: False
    InSyncChanges.apply = apply_from_any  # type: ignore[method-assign]
    ActiveController.require_broker = lambda self, broker_id, broker_epoch: None  # type: ignore[method-assign]


def fence_no_leaders() -> None:
    """Replicas take roles of older leader epochs, and fetches of any."""
    assume = Partition.assume

    def assume_any(self: Partition, state: Any) -> bool:
        machine = self.machine
        machine.leader_epoch = min(machine.leader_epoch, state.leader_epoch - 1)
        return assume(self, state)

    Partition.assume = assume_any  # type: ignore[method-assign]
    serve_fetches_of_any_epoch()


def serve_fetches_of_any_epoch() -> None:
    """Serve fetches of any leader epoch."""
    Partition.check_epoch = lambda self, current_leader_epoch: None  # type: ignore[method-assign]


def fence_nobody() -> None:
    """None of the fences is there."""
    fence_no_writes()
    fence_no_controllers()
    fence_no_lives()
    fence_no_leaders()


def forget_to_flush() -> None:
    """Flushes end, and wait for no disk."""

    def pretend(self: Flushes, segments: Any, end_offset: int, truncations: int) -> None:
        self._offsets.raise_recovery_point(end_offset, truncations)

    Flushes._sync = pretend  # type: ignore[method-assign]
    RecordsFlush.__call__ = lambda *_: None  # type: ignore[method-assign]
    SimulatedDisk.sync_files = lambda _, files: [None for _ in files]  # type: ignore[method-assign,assignment]


def acknowledge_before_the_flush() -> None:
    """Count appended records as flushed as soon as their flush is requested."""
    ask = Durability.flush_if_due

    def at_once(self: Durability) -> None:
        ask(self)
        self._flushed_end = self._log.log_end_offset
        self._on_end(None)

    Durability.flush_if_due = at_once  # type: ignore[method-assign]


def fetch_before_the_flush() -> None:
    """A follower tells its leader that it has what is not on its disk yet."""
    fetcher.is_owing = lambda partition: False  # type: ignore[attr-defined]


DEFECTS: dict[str, Callable[[], None]] = {
    "truncation": truncate_at_the_high_watermark,
    "epochs": take_any_in_sync_set,
    "acknowledgement": acknowledge_before_the_high_watermark,
    "fencing": fence_nobody,
    "fencing of writes": fence_no_writes,
    "fencing of controllers": fence_no_controllers,
    "fencing of lives": fence_no_lives,
    "fencing of leaders": fence_no_leaders,
    "fencing of fetches": serve_fetches_of_any_epoch,
    "flush": forget_to_flush,
    "flush of leaders": acknowledge_before_the_flush,
    "flush of followers": fetch_before_the_flush,
    **ANSWER_DEFECTS,
    **DELAY_DEFECTS,
    **GROUP_DEFECTS,
    **TRANSACTION_DEFECTS,
}
