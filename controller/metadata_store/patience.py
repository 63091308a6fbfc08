"""Repeats steps that need the store until the connection to it holds.

For the steps of a broker's start, during which a server of the ensemble may be restarting. Requests
of clients fail instead, so that nothing is done after they had an error.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from controller.metadata_store.store import (
    OutcomeUnknownError,
    SessionExpiredError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from controller.metadata_store.store import MetadataStore

PAUSE_SECONDS = 0.1
"""Pause before a step is retried: a reachable store may refuse it."""

BROKEN = (StoreUnavailableError, OutcomeUnknownError, SessionExpiredError)

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Patience:
    """The longest that a store may be unavailable, in all steps together."""

    def __init__(self, store: MetadataStore, limit_ms: int) -> None:
        """A step fails once `limit_ms` have been spent on waiting for the store."""
        self._store = store
        self._limit_seconds = limit_ms / 1000

    async def do(self, step: Callable[[], Awaitable[T]]) -> T:
        """Do a step, which may already have been done in part or as a whole.

        Raises the step's errors; those of an unavailable store only after `limit_ms`.
        """
        loop = asyncio.get_running_loop()
        left_seconds = self._limit_seconds
        while True:
            try:
                return await step()
            except BROKEN as error:
                if left_seconds <= 0:
                    raise
                broken = error
            logger.warning("startup waits for the metadata store: %s", broken)
            began = loop.time()
            try:
                async with asyncio.timeout(left_seconds):
                    await _pause()
                    await self._store.wait_until_reachable()
            except TimeoutError:
                raise broken from None
            left_seconds -= loop.time() - began


async def _pause() -> None:
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    waiting = loop.call_later(PAUSE_SECONDS, over.set_result, None)
    try:
        await over
    finally:
        waiting.cancel()
