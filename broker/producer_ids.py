"""Producer ids for this broker's clients, taken from the cluster in blocks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class ProducerIds:
    """Hands out ids one by one. What is left of a block is lost when the broker stops."""

    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        """`allocate` takes the next block; it raises ApiError if there is none to be had."""
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
        """Have at least one id at hand."""
        async with self._lock:
            if not self._left:
                self._left = await self._allocate()

    async def obtain(self) -> int:
        """The next id, taking a new block if need be; those who come meanwhile share the block."""
        while (taken := self.take()) is None:
            await self.refill()
        return taken
