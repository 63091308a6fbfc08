"""A leader's state of one follower: its log end offset, and when it last caught up."""

from __future__ import annotations

from typing import Final, Protocol

NEVER: Final = -(2**63)
"""Longer ago than any lag allowed: a monotonic clock may have begun at 0 only just now."""
UNKNOWN = -1


class Presence(Protocol):
    """Activity of a follower, from any fetch of its session, for whatever partitions."""

    fetched_ms: int
    """Time of its last fetch."""
    broker_epoch: int
    """Of its life then."""


class Follower:
    """A remote replica, seen through the offsets that it fetches.

    In sync is measured in time, not in bytes: a follower has caught up at the moment at which it
    fetched from the leader's log end, or from the log end as of its fetch before.

    One at the end of an idle partition rests there: it need not fetch that partition again, as any
    fetch of its session has the same effect.
    """

    __slots__ = (
        "_broker_epoch",
        "_caught_up_ms",
        "_last_fetch_leader_end",
        "_last_fetch_ms",
        "_presence",
        "broker_id",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self._broker_epoch = UNKNOWN
        self.log_end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self._caught_up_ms = NEVER
        self._last_fetch_leader_end = 0
        self._last_fetch_ms = NEVER
        self._presence: Presence | None = None

    @property
    def last_caught_up_ms(self) -> int:
        """Time at which it last was at the leader's log end."""
        presence = self._presence
        return self._caught_up_ms if presence is None else presence.fetched_ms

    @property
    def broker_epoch(self) -> int:
        """Of the life in which it fetched last."""
        return self._broker_epoch if self._presence is None else self._presence.broker_epoch

    def rest(self, presence: Presence) -> None:
        """Rest at the leader's log end until `rouse`: its presence shows that it is caught up."""
        self._presence = presence

    def rouse(self, presence: Presence) -> None:
        """The leader's end has moved, or may have: it must ask again."""
        if self._presence is presence:
            self._presence = None
            self._broker_epoch = presence.broker_epoch
            self._caught_up_ms = self._last_fetch_ms = presence.fetched_ms

    def start_over(self, now_ms: int, leader_end: int, *, is_in_sync: bool) -> None:
        """Forget how far it is, as a new leader epoch began; one in sync gets its time again."""
        self.log_end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self._broker_epoch = UNKNOWN
        self._presence = None
        self._caught_up_ms = now_ms if is_in_sync else NEVER
        self._last_fetch_leader_end = leader_end
        self._last_fetch_ms = self._caught_up_ms

    def fetched(
        self, offset: int, log_start_offset: int, now_ms: int, leader_end: int, broker_epoch: int
    ) -> bool:
        """Note a fetch of `offset` at the leader's LEO `leader_end`; return whether it moved.

        `leader_end` is the end before the read, so that appends do not keep it out of sync.
        """
        if self._presence is not None:
            self.rouse(self._presence)
        if offset >= leader_end:
            self._caught_up_ms = max(self._caught_up_ms, now_ms)
        elif offset >= self._last_fetch_leader_end:
            self._caught_up_ms = max(self._caught_up_ms, self._last_fetch_ms)
        has_moved = offset != self.log_end_offset
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self._broker_epoch = broker_epoch
        self._last_fetch_leader_end = leader_end
        self._last_fetch_ms = now_ms
        return has_moved

    def is_caught_up(self, leader_end: int, now_ms: int, max_lag_ms: int) -> bool:
        """Return whether it is at the leader's log end, or was within the last `max_lag_ms`."""
        return leader_end == self.log_end_offset or now_ms - self.last_caught_up_ms <= max_lag_ms
