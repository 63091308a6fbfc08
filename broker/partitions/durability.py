"""Progress of one replica's disk, for topics whose appends wait for it.

With `flush.messages` set, fewer than that number of acknowledged records may be missing on the
disk: after each append that leaves as many, the log is flushed, and records beyond `limit` are
neither committed nor acknowledged. A leader's high watermark stops there, so that acks=all waits as
it does for followers; acks=1 waits here, and so does a follower before its next fetch, which
acknowledges its records to its leader. With `flush.messages=3`:

    append ends at     on the disk     limit     answered
    2                  0               2         at once
    4                  0               2         when the flush to 4 that it starts has ended
    5                  4               6         at once

Nothing waits on the event loop: `group_commit` flushes on threads. Records appended meanwhile are
flushed together, once the flush under way has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker.partitions.commit_waiters import COMMITTED, CommitWaiters
from config.key import LONG_MAX
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.partitions.commit_waiters import CommitWaiter
    from protocol.errors import ApiError
    from storage.directory.log_directory import LogDirectory
    from storage.log.flushes import RecordsFlush
    from storage.log.log import Log

    OnEnd = Callable[[ApiError | None], None]
    """Called at the end of a flush, with its error."""

NEVER: Final = LONG_MAX
"""Value of `flush.messages` where appends do not wait for the disk."""
WHOLE_LOG: Final = 2**63
ALL: Final = "all"
"""Value of `flush.replicas`."""


class Flushes(Protocol):
    """Flusher of several logs together."""

    def add(self, log: Durability) -> None:
        """Flush it soon; again, if one is under way."""


def renewed(
    current: Durability | None,
    log: Log,
    flushes: Flushes,
    on_end: OnEnd,
) -> Durability | None:
    """Durability by its topic's present configuration: the current one, a new one, or None."""
    if log.config.flush_messages == NEVER:
        if current is not None:
            current.lift()
        return None
    wanted = current or Durability(log, flushes, on_end)
    wanted.limit_changed()
    return wanted


class Durability:
    """One log's part in the group commit; on the event loop only."""

    __slots__ = (
        "_flushed_end",
        "_flushes",
        "_is_flushing",
        "_log",
        "_on_end",
        "_started_end",
        "_truncations",
        "_waiters",
    )

    def __init__(self, log: Log, flushes: Flushes, on_end: OnEnd) -> None:
        """`on_end` is called after each flush, with its error, before those that wait here."""
        self._log = log
        self._flushes = flushes
        self._on_end = on_end
        self._flushed_end = self._started_end = log.recovery_point
        self._truncations = 0
        self._waiters = CommitWaiters(log.name)
        self._is_flushing = False
        log.flushes.on_release = self.flush_if_due

    def __str__(self) -> str:
        return self._log.name

    @property
    def is_for_all_replicas(self) -> bool:
        """True if followers may fetch on only once their records are on their disk."""
        return self._log.config.flush_replicas == ALL

    @property
    def limit(self) -> int:
        """End offset of the records that may be acknowledged."""
        return self._flushed_end + self._log.config.flush_messages - 1

    def flush_if_due(self) -> None:
        """After each append: have it flushed, if it must be."""
        log = self._log
        if log.log_end_offset - self._started_end >= log.config.flush_messages:
            self._flushes.add(self)

    def when_acknowledgeable(
        self, end_offset: int, callback: Callable[[ErrorCode], None]
    ) -> CommitWaiter:
        """Call `callback(NONE)` once `limit` is at least `end_offset`; at once, if it is.

        It gets another code if the disk fails, the log is cut, or this replica's role ends before.
        `callback` must raise nothing.
        """
        if self.limit >= end_offset:
            callback(ErrorCode.NONE)
            return COMMITTED
        self.flush_if_due()  # again, if the last flush failed for now
        return self._waiters.add(end_offset, callback)

    def fail(self, code: ErrorCode) -> None:
        """Call back all that wait."""
        self._waiters.fail(code)

    def limit_changed(self) -> None:
        """Apply a changed `flush.messages`: complete the waits that need no flush any more."""
        self._waiters.complete(self.limit, ErrorCode.NONE)
        self.flush_if_due()

    def lift(self) -> None:
        """The topic's appends wait for the disk no longer."""
        self._waiters.complete(WHOLE_LOG, ErrorCode.NONE)

    def cut(self) -> None:
        """Note a truncation: flushed records beyond the new end are gone; waits for them fail."""
        end = self._log.log_end_offset
        self._flushed_end = min(self._flushed_end, end)
        self._started_end = self._flushed_end
        self.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # For `group_commit`

    @property
    def directory(self) -> LogDirectory:
        """Directory where it is now."""
        return self._log.directory

    @property
    def is_under_way(self) -> bool:
        """True if a flush is under way, or held by a move of the log (KIP-113)."""
        return self._is_flushing or self._log.flushes.is_held

    def start(self) -> RecordsFlush:
        """Begin a flush, and return it; `ended` must follow. Raises LogDirectoryError."""
        offsets = self._log.offsets
        work = self._log.flushes.start_for_records(self._flushed_end)
        self._is_flushing = True
        self._started_end, self._truncations = offsets.log_end_offset, offsets.truncations
        return work

    def ended(self, error: ApiError | None) -> None:
        """A flush has ended; one of a log that was cut meanwhile says nothing."""
        self._is_flushing = False
        if error is None and self._truncations == self._log.offsets.truncations:
            self._flushed_end = self._started_end
        else:
            self._started_end = self._flushed_end
        self._on_end(error)
        if error is None:
            self._waiters.complete(self.limit, ErrorCode.NONE)
            self.flush_if_due()
        else:
            self.fail(error.code)
