"""Waits for what a handler answers later, as a connection does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from broker.deferred import Deferred

T = TypeVar("T")


async def arrival(answer: Deferred[T]) -> T:
    """Return the value when it is there; who is cancelled meanwhile has hung up."""
    arrived: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def give(value: T) -> None:
        if not arrived.done():  # cancelled, and not yet told so
            arrived.set_result(value)

    answer.then(give)
    try:
        return await arrived
    finally:
        answer.abandon()
