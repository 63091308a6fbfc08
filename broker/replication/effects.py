"""Effects of a step of the replica machine, for the machine's owner to carry out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.errors import ErrorCode

NO_OFFSET: Final = -1
"""In place of an offset: nothing of the kind is to be done."""

ANY_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class Proposal:
    """An in-sync set that the leader asks the controller to store (AlterPartition, KIP-497)."""

    in_sync: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    """The state that the set is to replace: the controller refuses it if there is a newer one."""
    broker_epochs: tuple[int, ...] = ()
    """In which of its lives each member of `in_sync` was seen; -1 for any.

    A broker that has restarted since may have lost records, and is not let in by this (KIP-903).
    """

    @property
    def members(self) -> Iterator[tuple[int, int]]:
        """Brokers with their epochs."""
        return zip(self.in_sync, self.broker_epochs or repeat(ANY_EPOCH), strict=False)


class Stored(NamedTuple):
    """A partition's state as the controller has stored it."""

    in_sync: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class Effects(NamedTuple):
    """Effects to carry out, in the order of the fields. A field at its default has no effect.

    The order matters: a log is truncated before any of it is committed; records are committed
    before readers look for them; the log start never passes the high watermark; and waiting
    producers get their response before anything else reacts to a lost leadership.
    """

    truncate_to: int = NO_OFFSET
    """Cut the log: nothing from this offset on is part of it."""
    restart_at: int = NO_OFFSET
    """Drop the whole log; it goes on at this offset."""
    commit_up_to: int = NO_OFFSET
    """Raise the high watermark, answer those that wait for it, and wake readers if it has risen."""
    start_at: int = NO_OFFSET
    """Raise the log start offset."""
    fail_waiters: ErrorCode | None = None
    """Answer all producers that wait for a commit with this error."""
    wake_readers: bool = False
    """Delayed fetches of consumers look again, though the high watermark may not rise."""
    wake_followers: bool = False
    """Delayed fetches of followers, and followers that were idle, look again."""
    check_starts: bool = False
    """The low watermark may have moved: delayed DeleteRecords look again."""
    proposal: Proposal | None = None
    """Ask the controller for this in-sync set; it replaces an earlier request for the partition."""


NOTHING: Final = Effects()
