"""Answers that a coroutine makes in the background, as a `Deferred`.

For admin requests; produce, fetch and heartbeats cost no task.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from broker.runtime.deferred import Deferred, errors_to, fail_if_cancelled
from controller.metadata_store.store import StoreError
from protocol.errors import ApiError, ErrorCode, detached

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.requests.context import Context

T = TypeVar("T")
logger = logging.getLogger(__name__)


def answer_later(
    context: Context,
    work: Coroutine[Any, Any, T],
    refuse: Callable[[ApiError], T | Awaitable[T]],
    name: str,
) -> Deferred[T]:
    """Run `work` in a task of the broker; `refuse` makes the answer of an error that it raises.

    Where that may be long, as each element of the request has the error, `refuse` is a coroutine.

    It is not cancelled when the client hangs up.
    """
    answer: Deferred[T] = Deferred()

    async def run() -> None:
        with errors_to(answer):  # if `refuse` fails, dispatch reports it
            answer.complete(await _outcome(work, refuse, name))

    fail_if_cancelled(answer, context.broker.spawn(run(), name))
    return answer


async def _outcome(
    work: Awaitable[T], refuse: Callable[[ApiError], T | Awaitable[T]], name: str
) -> T:
    try:
        return await work
    except ApiError as error:
        refusal = detached(error)
    except StoreError as error:
        reason = f"The metadata store cannot do that now: {error.reason}. Try again."
        refusal = ApiError(ErrorCode.REQUEST_TIMED_OUT, reason)
    except Exception as error:  # the border: a bug costs its request, not the broker
        logger.exception("%s failed", name)
        refusal = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    answer = refuse(refusal)
    return await answer if isinstance(answer, Awaitable) else answer
