"""Steps that need the store are done although the connection to it breaks meanwhile.

For what a broker does once, at its start, while a server of the ensemble may be restarting. What
clients ask for is refused instead, so that nothing is done behind their back.
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
"""Before a step is tried again: the store may be within reach and refuse."""

BROKEN = (StoreUnavailableError, OutcomeUnknownError, SessionExpiredError)

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Patience:
    """How long a store may be out of reach."""

    def __init__(self, store: MetadataStore, limit_ms: int) -> None:
        """A step is given up when `limit_ms` have been spent on waiting for the store."""
        self._store = store
        self._limit_seconds = limit_ms / 1000

    async def do(self, step: Callable[[], Awaitable[T]]) -> T:
        """Do a step, which may have been done before, in part or as a whole.

        Raises what the step raises; a StoreError that says that the store is out of reach, only
        when patience has come to its end.
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
