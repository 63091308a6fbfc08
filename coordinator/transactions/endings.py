"""EndTxn, and the end of transactions without their producer: decisions and repeated requests.

In the older protocol a transaction and the next one have the same epoch, so that a late EndTxn can
end the wrong one. From transaction version 2 on each end raises the epoch (KIP-890): a request with
the present epoch is about the present transaction, one with the epoch before is a repeat, which is
answered as the first one was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.transactions.ports import take
from coordinator.transactions.states import TransactionEvent, TransactionState
from coordinator.transactions.transaction import (
    EPOCH_PER_TRANSACTION,
    EXHAUSTED_EPOCH,
    NONE,
    Transaction,
)
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from coordinator.transactions.ports import End, ProducerIdBlocks

OLD_PROTOCOL = 0
"""The transaction version recorded of a producer that follows one below 2."""


def decide(
    known: Transaction | None, request: End, new_id: ProducerIdBlocks, now_ms: int
) -> Transaction | None:
    """The transaction in PREPARE_COMMIT or PREPARE_ABORT. Raises ApiError.

    None if the request repeats one that was carried out.
    """
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if known is None:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.client_version >= EPOCH_PER_TRANSACTION:
        return _decide(known, request, new_id, now_ms)
    return _decide_in_old_protocol(known, request, now_ms)


def fence(
    transaction: Transaction, version: int, new_id: ProducerIdBlocks, now_ms: int
) -> Transaction:
    """Take an open transaction away from its producer and abort it.

    `version` is the cluster's transaction version. Raises ApiError if it needs a new producer id
    and none is available.
    """
    if version < EPOCH_PER_TRANSACTION:
        return transaction.fence().decide(TransactionEvent.ABORTED, OLD_PROTOCOL, NONE, now_ms)
    return transaction.fence().decide(
        TransactionEvent.ABORTED, version, _next_producer_id(transaction, new_id), now_ms
    )


def _decide_in_old_protocol(known: Transaction, request: End, now_ms: int) -> Transaction | None:
    if known.producer_id != request.producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != request.producer_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if known.state.is_decided:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if known.state is TransactionState.ONGOING:
        return known.decide(_event(request), OLD_PROTOCOL, NONE, now_ms)
    if known.state is _outcome(request):
        return None
    raise _wrong_state(known, request)


def _decide(
    known: Transaction, request: End, new_id: ProducerIdBlocks, now_ms: int
) -> Transaction | None:
    if known.state.is_decided:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    epoch = request.producer_epoch
    is_after_rotation = (
        known.previous_producer_id == request.producer_id
        and epoch == EXHAUSTED_EPOCH
        and known.producer_epoch == 0
    )
    if known.producer_id != request.producer_id and not is_after_rotation:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_repeat = is_after_rotation or known.producer_epoch == epoch + 1
    if epoch != known.producer_epoch and not (known.state.is_complete and is_repeat):
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if known.state.is_complete and is_repeat:
        if known.state is _outcome(request):
            return None
        raise _wrong_state(known, request)
    if known.state is not TransactionState.ONGOING and request.is_commit:
        raise _wrong_state(known, request)
    next_producer_id = _next_producer_id(known, new_id)
    return known.decide(_event(request), request.client_version, next_producer_id, now_ms)


def _next_producer_id(transaction: Transaction, new_id: ProducerIdBlocks) -> int:
    return take(new_id) if transaction.is_epoch_exhausted else NONE


def _event(request: End) -> TransactionEvent:
    return TransactionEvent.COMMITTED if request.is_commit else TransactionEvent.ABORTED


def _outcome(request: End) -> TransactionState:
    """The state in which the request is carried out."""
    if request.is_commit:
        return TransactionState.COMPLETE_COMMIT
    return TransactionState.COMPLETE_ABORT


def _wrong_state(known: Transaction, request: End) -> ApiError:
    wish = "committed" if request.is_commit else "aborted"
    return ApiError(
        ErrorCode.INVALID_TXN_STATE,
        f"{known.transactional_id!r} is in {known.state.shown} and cannot be {wish}",
    )
