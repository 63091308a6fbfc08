"""InitProducerId: an id for an idempotent producer, or id and epoch for a transactional one.

Versions 0 to 5; v3 lets a producer continue from its id and epoch (KIP-360), v4 answers a fenced
one with PRODUCER_FENCED (KIP-588; INVALID_PRODUCER_EPOCH before). Version 6 (KIP-939) is not final
in Apache Kafka 4.3 either. Without a transactional id every request gets a new id at epoch 0, even
one that sends an id and epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_any,
    is_allowed_on_transaction,
    would_be_allowed_on_cluster,
)
from broker.requests.background_answer import answer_later
from broker.runtime.deferred import Deferred
from coordinator.transactions.ports import Identity, Initialisation
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from broker.requests.context import Context

NONE = -1
PRODUCER_FENCED_SINCE = 4

Answer = InitProducerIdResponse | Deferred[InitProducerIdResponse]


@handles(InitProducerIdRequest, versions="0-5")
def init_producer_id(context: Context, request: InitProducerIdRequest) -> Answer:
    """Hand out an id, or ask the coordinator; waits only for a new block of ids."""
    code = _access_error(context, request.transactional_id)
    if code is not ErrorCode.NONE:
        return _refusal(code)
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return _refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _initialise(context, request, request.transactional_id)
    producer_id = context.broker.producer_ids.take()
    if producer_id is not None:
        return _answer(producer_id)
    return answer_later(
        context, _obtain(context), lambda error: _refusal(error.code), "producer id"
    )


def _access_error(context: Context, transactional_id: str | None) -> ErrorCode:
    """Error if the client may not have a producer id.

    Without a transactional id, IDEMPOTENT_WRITE on the cluster suffices, or WRITE on any topic
    (KIP-679).
    """
    if transactional_id is not None:
        if is_allowed_on_transaction(context, AclOperation.WRITE, transactional_id):
            return ErrorCode.NONE
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if would_be_allowed_on_cluster(context, AclOperation.IDEMPOTENT_WRITE) or is_allowed_on_any(
        context, AclOperation.WRITE, ResourceType.TOPIC
    ):
        return ErrorCode.NONE
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _initialise(
    context: Context, request: InitProducerIdRequest, transactional_id: str
) -> Deferred[InitProducerIdResponse]:
    reply: Deferred[Identity] = Deferred()

    def initialised(identity: Identity) -> InitProducerIdResponse:
        code = identity.error
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < PRODUCER_FENCED_SINCE:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(
            error_code=code,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
        )

    expected = (request.producer_id, request.producer_epoch)
    initialisation = Initialisation(
        transactional_id=transactional_id,
        timeout_ms=request.transaction_timeout_ms,
        expected=None if request.producer_id == NONE else expected,
        is_two_phase=request.enable2_pc,
        keeps_prepared=request.keep_prepared_txn,
    )
    context.broker.transactions.initialise(initialisation, reply)
    return reply.map(initialised)


async def _obtain(context: Context) -> InitProducerIdResponse:
    return _answer(await context.broker.producer_ids.obtain())


def _answer(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0
    )


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
