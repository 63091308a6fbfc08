"""Waits for what a handler answers later, as a connection does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from broker.runtime.deferred import Deferred

T = TypeVar("T")


async def arrival(answer: Deferred[T]) -> T:
    """Return the value when it is there, or raise the error; cancelling this is hanging up."""
    arrived: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def give(value: T) -> None:
        if not arrived.done():  # cancelled, and not yet told so
            arrived.set_result(value)

    def fail(error: Exception) -> None:
        if not arrived.done():
            arrived.set_exception(error)

    answer.then(give, fail)
    try:
        return await arrived
    finally:
        answer.abandon()
