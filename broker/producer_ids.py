"""Producer ids for this broker's clients, taken from the cluster in blocks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controller.store import StoreError
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class ProducerIds:
    """Hands out ids one by one. What is left of a block is lost when the broker stops."""

    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        """`allocate` takes the next block; it raises ApiError or StoreError if it gets none."""
        self._allocate = allocate
        self._left = range(0)
        self._lock = asyncio.Lock()

    @property
    def is_empty(self) -> bool:
        """Whether a new block has to be taken before the next id can be handed out."""
        return not self._left

    def take(self) -> int | None:
        """The next id, None if the block is used up: then `obtain` gets one."""
        if not self._left:
            return None
        taken, self._left = self._left[0], self._left[1:]
        return taken

    async def refill(self) -> None:
        """Have at least one id at hand.

        Raises ApiError; COORDINATOR_LOAD_IN_PROGRESS, on which every client comes again, while the
        metadata store gives no block.
        """
        async with self._lock:
            if self._left:
                return
            try:
                self._left = await self._allocate()
            except StoreError as error:
                reason = f"The metadata store gives no producer ids now: {error.reason}"
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason) from error

    async def obtain(self) -> int:
        """The next id, from a new block if need be, which all who wait share. Raises ApiError."""
        while (taken := self.take()) is None:
            await self.refill()
        return taken
