"""Stores the changes of one share-partition, one write at a time.

While a write is on its way further changes gather, and are stored together by the next. So they
arrive in order, and a busy partition costs the coordinator few records. At most the records in
flight are waiting: none changes again before it is stored, unless its lock expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.runtime.deferred import Deferred
from coordinator.share_state.state import NO_START_OFFSET, StateChange
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.coordinators.share_state.store import ShareStateStore
    from coordinator.share_state.state import SharePartition, StateBatch

BATCHES_AT_ONCE: Final = 1000
"""Fixed: encoding and applying them blocks the event loop."""
RETRIABLE: Final = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
}
"""The last two as well, by which a coordinator is known that has just died or hangs."""
FENCED: Final = {ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH}
TOLD: Final = {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class StateWriter:
    """Writes of one leader epoch."""

    __slots__ = (
        "_is_writing",
        "_key",
        "_leader_epoch",
        "_position",
        "_store",
        "_waiting",
        "epoch",
        "start_offset",
    )

    def __init__(
        self,
        store: ShareStateStore,
        key: SharePartition,
        leader_epoch: int,
        position: Callable[[], tuple[int, int]],
    ) -> None:
        """`position` returns the start offset and the number of finished records from there on.

        It is called when a write begins, as it may have moved by then.
        """
        self._store = store
        self._key = key
        self._leader_epoch = leader_epoch
        self._position = position
        self._waiting: list[tuple[Sequence[StateBatch], Deferred[None]]] = []
        self._is_writing = False
        self.epoch = -1
        """The state epoch, once it is known."""
        self.start_offset = NO_START_OFFSET
        """Stored start offset, as far as known."""

    @property
    def is_idle(self) -> bool:
        """True if all changes are stored."""
        return not self._is_writing and not self._waiting

    def write(self, batches: Sequence[StateBatch]) -> Deferred[None]:
        """Store changes; fails with an ApiError suitable for members."""
        stored: Deferred[None] = Deferred()
        self._waiting.append((batches, stored))
        if not self._is_writing:
            self._write_next()
        return stored

    def _next(self) -> list[tuple[Sequence[StateBatch], Deferred[None]]]:
        """The changes that are written together: those of one step at least."""
        count = size = 0
        for batches, _ in self._waiting:
            size += len(batches)
            if count and size > BATCHES_AT_ONCE:
                break
            count += 1
        writing, self._waiting = self._waiting[:count], self._waiting[count:]
        return writing

    def _write_next(self) -> None:
        writing = self._next()
        self._is_writing = True
        batches = tuple(batch for some, _ in writing for batch in some)
        start, final_count = self._position()
        change = StateChange(self.epoch, self._leader_epoch, start, final_count, batches)

        def end(error: Exception | None) -> None:
            self._is_writing = False
            if error is None:
                self.start_offset = start
            for _, stored in writing:
                if error is None:
                    stored.complete(None)
                else:
                    stored.fail(error)
            if self._waiting and not self._is_writing:
                self._write_next()

        try:
            storing = self._store.write(self._key, change)
        except Exception as error:  # noqa: BLE001 - delivered
            end(as_told(error))
            return
        storing.then(lambda _: end(None), lambda error: end(as_told(error)))


def as_fetched(error: Exception) -> Exception:
    """As `as_told`, for fetches: Apache Kafka's share consumer ends at errors of coordinators.

    Of the errors that it retries, OFFSET_NOT_AVAILABLE comes closest.
    """
    told = as_told(error)
    if isinstance(told, ApiError) and told.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, told.message)
    return told


def as_told(error: Exception) -> Exception:
    """Convert an error of the share coordinator to the one for members of the group."""
    if not isinstance(error, ApiError):
        return error
    if error.code in TOLD:
        return error
    if error.code in RETRIABLE:
        return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    if error.code in FENCED:
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message)
