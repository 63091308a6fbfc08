"""The ports of a shard: timers, member ids, and somewhere to put answers."""

from __future__ import annotations

import enum
from typing import NamedTuple, Protocol, TypeVar

T_contra = TypeVar("T_contra", contravariant=True)


class TimerKind(enum.Enum):
    """The purpose of a timer. A group has at most one of each of the first two."""

    JOIN = enum.auto()
    """End of the join phase: the initial delay, or the rebalance timeout."""
    SYNC = enum.auto()
    """Deadline by which members that joined must have sent SyncGroup."""
    SESSION = enum.auto()
    """A member's session, or the time a pending member has to come back."""
    CONSUMER_GROUP = enum.auto()
    """The earliest deadline of a consumer group of the newer protocol."""
    STREAMS_GROUP = enum.auto()
    """The earliest deadline of a streams group."""
    STREAMS_INITIAL_DELAY = enum.auto()
    """A new streams group has waited for more members."""
    SHARE_GROUP = enum.auto()
    """The earliest deadline of a share group."""


class TimerKey(NamedTuple):
    """Names a timer. Starting one that runs replaces it."""

    group_id: str
    kind: TimerKind
    member_id: str = ""


class Timers(Protocol):
    """Runs `GroupShard.expire(key, now_ms)` once, `delay_ms` after `start`.

    `now_ms` of `expire` is the wall clock's, which may be set; delays pass by a clock of their own.
    """

    @property
    def now_ms(self) -> int:
        """Milliseconds of a monotonic clock, by which delays and deadlines count."""

    def start(self, key: TimerKey, delay_ms: int) -> None:
        """Start, or restart, the timer."""

    def cancel(self, key: TimerKey) -> None:
        """Stop it; does nothing when it does not run."""


class MemberIds(Protocol):
    """A source of ids that never repeat."""

    def __call__(self) -> str:
        """Return a fresh id, a UUID in text form."""


class Reply(Protocol[T_contra]):
    """Receiver of the answer to one request, now or later. `Deferred` of the broker is one."""

    def complete(self, value: T_contra, /) -> object:
        """Deliver the answer. Called exactly once for each reply handed to a shard."""
