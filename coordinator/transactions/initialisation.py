"""InitProducerId with a transactional id: the producer's id and epoch (KIP-98, KIP-360).

The last producer to initialise wins: the epoch is raised, which fences its predecessor. A producer
that continues after an error sends its id and epoch; it is accepted if they are the newest, or the
ones before and the answer to its first request was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.transactions.ports import take
from coordinator.transactions.states import TransactionState
from coordinator.transactions.transaction import (
    EXHAUSTED_EPOCH,
    NONE,
    UNLIMITED_TIMEOUT,
    Transaction,
)
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from coordinator.transactions.ports import Initialisation, ProducerIdBlocks
    from coordinator.transactions.settings import TransactionSettings


def check(request: Initialisation, settings: TransactionSettings) -> None:
    """Check the fields that do not depend on the state of the transactional id. Raises ApiError."""
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if request.is_two_phase and not settings.is_two_phase_commit_enabled:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keeps_prepared:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if not request.is_two_phase and not 0 < request.timeout_ms <= settings.max_timeout_ms:
        raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def decide(
    known: Transaction | None, request: Initialisation, new_id: ProducerIdBlocks, now_ms: int
) -> Transaction:
    """The next state of the transactional id. Raises ApiError.

    PREPARE_ABORT: the open transaction has to be aborted first, and the client has to retry.
    """
    timeout_ms = UNLIMITED_TIMEOUT if request.is_two_phase else request.timeout_ms
    if known is None:
        known = Transaction(request.transactional_id, take(new_id), timeout_ms)
    if known.state.is_decided:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if request.expected is not None:
        _check_identity(known, request.expected)
    if known.state is TransactionState.ONGOING:
        return known
    if known.is_epoch_exhausted and (
        request.expected is None or request.expected[1] == known.producer_epoch
    ):
        last_epoch = NONE if request.expected is None else known.producer_epoch
        return known.rotate(take(new_id), timeout_ms, last_epoch, now_ms)
    return _raise_epoch(known, request, timeout_ms, now_ms)


def _check_identity(known: Transaction, expected: tuple[int, int]) -> None:
    producer_id, epoch = expected
    if known.producer_epoch == NONE or producer_id == known.producer_id:
        return
    if producer_id == known.previous_producer_id and epoch >= EXHAUSTED_EPOCH:
        return
    raise ApiError(ErrorCode.PRODUCER_FENCED)


def _raise_epoch(
    known: Transaction, request: Initialisation, timeout_ms: int, now_ms: int
) -> Transaction:
    if request.expected is None:
        return known.raise_epoch(timeout_ms, NONE, now_ms)
    epoch = request.expected[1]
    if known.producer_epoch in (NONE, epoch):
        return known.raise_epoch(timeout_ms, known.producer_epoch, now_ms)
    if epoch == known.last_epoch:
        return known.repeat_epoch(timeout_ms, now_ms)
    raise ApiError(ErrorCode.PRODUCER_FENCED)
