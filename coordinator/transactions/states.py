"""The states of a transactional id and every transition between them.

                 ┌──────────────── initialised, while nothing is open ───────────────┐
                 ▼                                                                   │
    EMPTY ──partitions added──▶ ONGOING ──commit──▶ PREPARE_COMMIT ──marked──▶ COMPLETE_COMMIT
      │                          │  ▲ │                                            │  │
      │                          │  │ └─fence─▶ PREPARE_EPOCH_FENCE                │  │
      │                          │  │                   │ abort                    │  │
      │                          │  └─────────────────────────partitions added─────┘  │
      │                          │                       ▼                            │
      └──abort──▶ PREPARE_ABORT ◀┴──abort── (also from COMPLETE_*) ◀──────abort───────┘
                      └──marked──▶ COMPLETE_ABORT (from which it goes on as from COMPLETE_COMMIT)

An id that is unused for `transactional.id.expiration.ms` goes from EMPTY or COMPLETE_* to DEAD.
PREPARE_EPOCH_FENCE lasts for one decision: the coordinator takes a transaction away from its
producer, by raising the epoch, and aborts it. An abort without an open transaction exists in
transaction version 2 (KIP-890): it raises the epoch.
"""

from __future__ import annotations

import enum


class TransactionState(enum.IntEnum):
    """The number is the one in records."""

    EMPTY = 0
    """The producer is known; nothing is open."""
    ONGOING = 1
    """Partitions were added."""
    PREPARE_COMMIT = 2
    """Decided: it is committed; markers are being written."""
    PREPARE_ABORT = 3
    """Decided: it is aborted; markers are being written."""
    COMPLETE_COMMIT = 4
    """All markers are written."""
    COMPLETE_ABORT = 5
    """All markers are written."""
    DEAD = 6
    """Forgotten."""
    PREPARE_EPOCH_FENCE = 7
    """Being taken away from its producer."""

    @property
    def shown(self) -> str:
        """The name that clients see and send in ListTransactions and DescribeTransactions."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_decided(self) -> bool:
        """Its end is decided, but not all of its markers are known to be written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        """A transaction has ended, and no other has begun."""
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


class TransactionEvent(enum.Enum):
    """The events that move a transactional id from one state to another."""

    INITIALISED = enum.auto()
    """A producer requested its id and epoch."""
    PARTITIONS_ADDED = enum.auto()
    """A producer is about to write to partitions, or to commit offsets."""
    COMMITTED = enum.auto()
    """The producer commits."""
    ABORTED = enum.auto()
    """The producer, or the coordinator, aborts."""
    FENCED = enum.auto()
    """A new producer initialised, or the transaction timed out."""
    MARKED = enum.auto()
    """All its partitions have their markers."""
    EXPIRED = enum.auto()
    """The transactional id was idle for `transactional.id.expiration.ms`."""


_S, _E = TransactionState, TransactionEvent

TRANSITIONS: dict[tuple[TransactionState, TransactionEvent], TransactionState] = {
    (_S.EMPTY, _E.INITIALISED): _S.EMPTY,
    (_S.EMPTY, _E.PARTITIONS_ADDED): _S.ONGOING,
    (_S.EMPTY, _E.ABORTED): _S.PREPARE_ABORT,
    (_S.EMPTY, _E.EXPIRED): _S.DEAD,
    (_S.ONGOING, _E.PARTITIONS_ADDED): _S.ONGOING,
    (_S.ONGOING, _E.COMMITTED): _S.PREPARE_COMMIT,
    (_S.ONGOING, _E.ABORTED): _S.PREPARE_ABORT,
    (_S.ONGOING, _E.FENCED): _S.PREPARE_EPOCH_FENCE,
    (_S.PREPARE_EPOCH_FENCE, _E.ABORTED): _S.PREPARE_ABORT,
    (_S.PREPARE_COMMIT, _E.MARKED): _S.COMPLETE_COMMIT,
    (_S.PREPARE_ABORT, _E.MARKED): _S.COMPLETE_ABORT,
    (_S.COMPLETE_COMMIT, _E.INITIALISED): _S.EMPTY,
    (_S.COMPLETE_COMMIT, _E.PARTITIONS_ADDED): _S.ONGOING,
    (_S.COMPLETE_COMMIT, _E.ABORTED): _S.PREPARE_ABORT,
    (_S.COMPLETE_COMMIT, _E.EXPIRED): _S.DEAD,
    (_S.COMPLETE_ABORT, _E.INITIALISED): _S.EMPTY,
    (_S.COMPLETE_ABORT, _E.PARTITIONS_ADDED): _S.ONGOING,
    (_S.COMPLETE_ABORT, _E.ABORTED): _S.PREPARE_ABORT,
    (_S.COMPLETE_ABORT, _E.EXPIRED): _S.DEAD,
}
"""Any pair that is not here is our mistake and raises KeyError; requests that would lead to one are
refused before.
"""

STATES_BY_NAME = {state.shown: state for state in TransactionState}
EXPIRABLE = frozenset(state for state, event in TRANSITIONS if event is _E.EXPIRED)
"""States in which a transactional id may be forgotten."""
