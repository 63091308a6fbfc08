"""What a shard of transactions needs from outside, and what it answers with."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from coordinator.transactions.transaction import NONE
from protocol.errors import ApiError, ErrorCode


class ProducerIdBlocks(Protocol):
    """A source of producer ids that never repeat."""

    def __call__(self) -> int | None:
        """Return a fresh id; None when there is none at hand: the client is told to come again."""


def take(new_id: ProducerIdBlocks) -> int:
    """A new producer id; raises COORDINATOR_LOAD_IN_PROGRESS, at which clients come again."""
    producer_id = new_id()
    if producer_id is None:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id is at hand")
    return producer_id


class Identity(NamedTuple):
    """What a producer is told when it begins, or ends a transaction: an error or who it is now."""

    error: ErrorCode
    producer_id: int = NONE
    producer_epoch: int = NONE


class Initialisation(NamedTuple):
    """A producer with a transactional id begins."""

    transactional_id: str
    timeout_ms: int
    expected: tuple[int, int] | None = None
    """Producer id and epoch that it has, when it wants to go on from them (KIP-360)."""
    is_two_phase: bool = False
    """An outside coordinator ends its transactions (KIP-939)."""
    keeps_prepared: bool = False
    """It wants the open transaction left as it is (KIP-939)."""


class End(NamedTuple):
    """A producer wants its transaction ended."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int
    """The transaction version that the producer follows."""
