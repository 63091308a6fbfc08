"""InitProducerId: an id for an idempotent producer.

Versions 0 to 5. Without a transactional id every request gets a new id at epoch 0, also one that
wants to bump the epoch of an id it has (v3). Transactional ids are refused until there is a
transaction coordinator (see GAPS.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.answering import answer_later
from broker.routing import handles
from protocol.errors import ApiError, ErrorCode
from protocol.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from broker.context import Context
    from broker.deferred import Deferred

NONE = -1


@handles(InitProducerIdRequest, versions="0-5")
def init_producer_id(
    context: Context, request: InitProducerIdRequest
) -> InitProducerIdResponse | Deferred[InitProducerIdResponse]:
    """Hand out the next id; a wait only when a new block has to be taken."""
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return _refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return _refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refusal(ErrorCode.UNSUPPORTED_VERSION)
    producer_id = context.broker.producer_ids.take()
    if producer_id is not None:
        return _answer(producer_id)
    return answer_later(
        context, _obtain(context), lambda error: _refusal(error.code), "producer id"
    )


async def _obtain(context: Context) -> InitProducerIdResponse:
    try:
        return _answer(await context.broker.producer_ids.obtain())
    except ApiError:
        return _refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _answer(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0
    )


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
