"""Mistakes that coordinators and share groups could have; seeds with `--groups` must find each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.coordinators.shard_runtime import ShardRuntime
from broker.runtime.deferred import Deferred
from broker.share_partitions import led_partition
from broker.share_partitions.led_partition import LedSharePartition
from coordinator.consumer_groups.consumer_shard import ConsumerShard
from coordinator.consumer_groups.group import NOBODY, ConsumerGroup
from coordinator.effects import Effects
from coordinator.modern_groups.watches import Watches
from coordinator.offsets import offset_commits
from coordinator.share_partitions import acknowledgement, in_flight
from coordinator.share_partitions.in_flight import InFlightRecords
from coordinator.share_partitions.record_range import RecordState
from coordinator.share_state import shard as share_shard
from coordinator.streams_groups.group import StreamsGroup
from coordinator.streams_groups.streams_shard import StreamsShard
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.share_partitions.record_range import Transition
    from coordinator.share_state.state import StoredState

EARLY_MS: Final = 1000


def take_any_commit() -> None:
    """Accept commits of anyone, member or not."""
    ConsumerShard.check_commit = lambda *_: None  # type: ignore[method-assign]
    StreamsShard.check_commit = lambda *_: None  # type: ignore[method-assign]
    offset_commits._member_commit_error = lambda *_: ErrorCode.NONE


def give_what_others_own() -> None:
    """A partition is given to its next owner before the last one has given it up."""
    ConsumerGroup.owner_epoch = lambda *_: NOBODY  # type: ignore[method-assign]
    StreamsGroup.active_process = lambda *_: None  # type: ignore[method-assign]


def answer_before_the_commit() -> None:
    """Coordinators answer once they alone have the records."""

    def at_once(self: ShardRuntime[Any], callback: Callable[[ErrorCode], None]) -> None:
        callback(ErrorCode.NONE)

    ShardRuntime.when_committed = at_once  # type: ignore[method-assign]


def keep_the_dead() -> None:
    """A member whose removal could not be stored is not looked at again."""
    Watches.not_removed = lambda *_: Effects()  # type: ignore[method-assign]


def acknowledge_before_it_is_stored() -> None:
    """A member of a share group hears that its acknowledgements hold before they do."""
    store = LedSharePartition._store

    def store_later(
        self: LedSharePartition, transition: Transition, *, is_start_owed: bool = False
    ) -> Deferred[None]:
        store(self, transition, is_start_owed=is_start_owed).then(lambda _: None, lambda _: None)
        done: Deferred[None] = Deferred()
        done.complete(None)
        return done

    LedSharePartition._store = store_later  # type: ignore[method-assign]


def forget_delivery_counts() -> None:
    """A new leader counts deliveries from the beginning."""
    restored = in_flight._restored

    def restored_as_new(batch: Any, *where: Any) -> Any:
        return restored(batch._replace(delivery_count=0), *where)

    in_flight._restored = restored_as_new  # type: ignore[assignment]


def forget_acknowledgements() -> None:
    """A new leader begins at the start offset, whatever was acknowledged behind it."""
    load = in_flight.load

    def load_start_alone(stored: StoredState, *where: Any) -> Any:
        return load(stored._replace(batches=()), *where)

    led_partition.load = load_start_alone  # type: ignore[attr-defined, assignment]


def expire_locks_early() -> None:
    """A lock ends before the time that its member was told."""
    expire = InFlightRecords.expire_locks

    def expire_early(self: InFlightRecords, now_ms: int, *most: int) -> Any:
        return expire(self, now_ms + EARLY_MS, *most)

    InFlightRecords.expire_locks = expire_early  # type: ignore[method-assign, assignment]


def skip_what_is_released() -> None:
    """A record that was released passes for archived."""
    acknowledgement.released = lambda *_: RecordState.ARCHIVED


def fence_no_leaders_of_share_groups() -> None:
    """Share state is written by leaders that have a successor."""
    share_shard._check_leader = lambda *_: None


GROUP_DEFECTS: Final[dict[str, Callable[[], None]]] = {
    "fencing of commits": take_any_commit,
    "owners": give_what_others_own,
    "answers of coordinators": answer_before_the_commit,
    "removals": keep_the_dead,
    "acknowledgements of shares": acknowledge_before_it_is_stored,
    "delivery counts": forget_delivery_counts,
    "state of shares": forget_acknowledgements,
    "locks": expire_locks_early,
    "releases": skip_what_is_released,
    "fencing of share leaders": fence_no_leaders_of_share_groups,
}
