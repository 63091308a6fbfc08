"""Ranges of records in one state, and the states.

                 acquire                    accept
    AVAILABLE ────────────▶ ACQUIRED ─────────────────▶ ACKNOWLEDGED
        │  ◀──────────────────  │ │  release with a delivery left; the lock expired
        │                       │ └─ reject, a gap, a release after the last delivery
        └── gone from the log ──┴────────────────────▶ ARCHIVED

An acknowledgement takes effect at once, but is a `Transition` until it is stored: no other member
gets the records, and if the change cannot be stored they are acquired as before, or available if
their lock has expired meanwhile.

Source: `RecordState` and `InFlightState` in Apache Kafka 4.3.1.
"""

from __future__ import annotations

import enum
from typing import Final

from coordinator.share_state.state import DeliveryState

NOBODY: Final = ""
DEPARTED: Final = "\ud800"
"""Holds the records of departed members, until released. Not valid UTF-8, so not a member's id."""


class RecordState(enum.IntEnum):
    """Delivery state of a record in a share group; the values are stored."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """True if the record is never delivered again."""
        return self >= RecordState.ACKNOWLEDGED


TRANSITIONS: Final = {
    RecordState.AVAILABLE: {RecordState.ACQUIRED, RecordState.ARCHIVED},
    RecordState.ACQUIRED: {
        RecordState.AVAILABLE,
        RecordState.ACKNOWLEDGED,
        RecordState.ARCHIVED,
    },
    RecordState.ACKNOWLEDGED: set(),
    RecordState.ARCHIVED: set(),
}
STORED: Final = {
    RecordState.AVAILABLE: DeliveryState.AVAILABLE,
    RecordState.ACKNOWLEDGED: DeliveryState.ACKNOWLEDGED,
    RecordState.ARCHIVED: DeliveryState.ARCHIVED,
}


class AcknowledgeType(enum.IntEnum):
    """Type of an acknowledgement, as in requests."""

    GAP = 0
    """No record to deliver: it was compacted, or is a control record."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Transition:
    """A step that is being stored."""

    __slots__ = ("member_id", "ranges")

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        """Member that had acquired the records."""
        self.ranges: list[RecordRange] = []


class RecordRange:
    """Records from `first` to `last`. They were fetched together if their `batch_first` is one."""

    __slots__ = (
        *("batch_first", "batch_last", "delivery_count", "first", "last", "lock_until_ms"),
        *("member_id", "state", "transition"),
    )

    def __init__(self, first: int, last: int, state: RecordState, delivery_count: int) -> None:
        assert first <= last
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        """Deliveries so far; 0 for offsets that were never fetched, such as a gap."""
        self.batch_first = first
        self.batch_last = last
        self.member_id = NOBODY
        self.lock_until_ms = 0
        """While acquired, or in a transition from that; monotonic."""
        self.transition: Transition | None = None

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        waits = "*" if self.transition is not None else ""
        return f"{self.first}-{self.last} {self.state.name}{waits} x{self.delivery_count}"

    @property
    def is_available(self) -> bool:
        """True if a member may acquire it."""
        return self.state is RecordState.AVAILABLE and self.transition is None

    @property
    def is_gap(self) -> bool:
        """True if it was archived without having been delivered."""
        return self.state is RecordState.ARCHIVED and self.delivery_count == 0

    @property
    def is_finished(self) -> bool:
        """True if it is, and remains, in a final state."""
        return self.state.is_final and self.transition is None

    def split(self, offset: int) -> RecordRange:
        """Cut it before `offset`, which lies within; returns the second part."""
        assert self.first < offset <= self.last
        rest = RecordRange(offset, self.last, self.state, self.delivery_count)
        rest.batch_first = self.batch_first
        rest.batch_last = self.batch_last
        rest.member_id = self.member_id
        rest.lock_until_ms = self.lock_until_ms
        rest.transition = self.transition
        if self.transition is not None:
            self.transition.ranges.append(rest)
        self.last = offset - 1
        return rest

    def continues(self, before: RecordRange) -> bool:
        """Return whether it can be merged with the range just before it."""
        if self.state is not before.state or self.transition or before.transition:
            return False
        if self.state.is_final:
            return self.is_gap == before.is_gap
        return (
            self.batch_first == before.batch_first
            and self.delivery_count == before.delivery_count
            and self.member_id == before.member_id
            and self.lock_until_ms == before.lock_until_ms
        )
