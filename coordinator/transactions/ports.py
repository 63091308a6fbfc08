"""The ports of a shard of transactions, and the types of its requests and answers."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from coordinator.transactions.transaction import NONE
from protocol.errors import ApiError, ErrorCode


class ProducerIdBlocks(Protocol):
    """A source of producer ids that never repeat."""

    def __call__(self) -> int | None:
        """Return a fresh id; None if none is available: the client has to retry."""


def take(new_id: ProducerIdBlocks) -> int:
    """A new producer id. Raises COORDINATOR_LOAD_IN_PROGRESS, which clients retry."""
    producer_id = new_id()
    if producer_id is None:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id is at hand")
    return producer_id


class Identity(NamedTuple):
    """The answer to InitProducerId or EndTxn: an error, or the producer's id and epoch."""

    error: ErrorCode
    producer_id: int = NONE
    producer_epoch: int = NONE


class Initialisation(NamedTuple):
    """A producer with a transactional id initialises."""

    transactional_id: str
    timeout_ms: int
    expected: tuple[int, int] | None = None
    """The producer id and epoch to continue from, if it has them (KIP-360)."""
    is_two_phase: bool = False
    """True if an outside coordinator ends its transactions (KIP-939)."""
    keeps_prepared: bool = False
    """True if it keeps the open transaction (KIP-939)."""


class End(NamedTuple):
    """A producer's request to end its transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int
    """The transaction version that the producer follows."""
