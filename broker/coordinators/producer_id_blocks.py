"""Producer ids for this broker's clients, taken from the cluster in blocks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controller.metadata_store.store import StoreError
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Refusal = tuple[ErrorCode, str]


class ProducerIdBlocks:
    """Hands out ids one by one. The rest of a block is lost when the broker stops."""

    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        """`allocate` returns the next block, or raises ApiError or StoreError."""
        self._allocate = allocate
        self._left = range(0)
        self._asked: asyncio.Future[Refusal | None] | None = None
        """The allocation in progress, if any; its result is None if it was cancelled."""

    @property
    def is_empty(self) -> bool:
        """True if the next id needs a new block."""
        return not self._left

    def take(self) -> int | None:
        """The next id, or None if the block is used up: `obtain` then allocates another."""
        if not self._left:
            return None
        taken, self._left = self._left[0], self._left[1:]
        return taken

    async def refill(self) -> None:
        """Make sure that an id is available; all concurrent callers share one allocation.

        Raises ApiError: COORDINATOR_LOAD_IN_PROGRESS, which every client retries, while the
        metadata store is unavailable.
        """
        while not self._left:
            if self._asked is None:
                await self._take_block()
                return
            refusal = await asyncio.shield(self._asked)
            if refusal is not None:
                raise ApiError(*refusal)

    async def _take_block(self) -> None:
        asked = self._asked = asyncio.get_running_loop().create_future()
        refusal: Refusal | None = None
        try:
            self._left = await self._allocate()
        except StoreError as error:
            reason = f"The metadata store gives no producer ids now: {error.reason}"
            refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason
            raise ApiError(*refusal) from error
        except ApiError as error:
            refusal = error.code, error.message
            raise
        except Exception:
            refusal = ErrorCode.UNKNOWN_SERVER_ERROR, "There are no producer ids"
            raise
        finally:
            self._asked = None
            asked.set_result(refusal)

    async def obtain(self) -> int:
        """The next id, from a new block if need be. Raises ApiError as `refill` does."""
        while (taken := self.take()) is None:
            await self.refill()
        return taken
