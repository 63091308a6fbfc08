"""Requests so long that others are served while they are read.

A frame of 100 MB may hold thirty million topic names, which take ten seconds to read and gigabytes
to keep. So the number of elements is bounded, in all arrays of a request together, and what is not
read after the first few goes on in slices. A frame that is long for its records alone, as those of
Produce are, is read at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.runtime.slices import Slices
    from protocol.schema import Request

LONG_BYTES = 32 * 1024
"""A frame of up to this size is read in one go, which takes five milliseconds at most."""
ELEMENTS_AT_ONCE = 1000
"""As many of a longer one take about a millisecond."""


class TooManyElementsError(DecodeError):
    """The request is well-formed, as far as it was read, and larger than this broker takes."""


class LongRequest:
    """One request that is being read."""

    __slots__ = ("_elements", "_limit", "_steps", "request")

    request: Request
    """Once it is read."""

    def __init__(self, steps: Generator[int, None, tuple[Request, int]], limit: int | None) -> None:
        """`steps` are those of a step decoder; `limit` is how many elements it may have."""
        self._steps = steps
        self._elements = 0
        self._limit = limit

    def read_at_once(self) -> bool:
        """Read it if it is short after all; tells whether it was. Raises UNDECODABLE."""
        while self._go_on():
            if self._elements > ELEMENTS_AT_ONCE:
                return False
        return True

    async def read_on(self, slices: Slices) -> None:
        """Read the rest, and have others served meanwhile. Raises UNDECODABLE."""
        await slices.give_way()
        while self._go_on():
            await slices.give_way()

    def _go_on(self) -> bool:
        try:
            self._elements = next(self._steps)
        except StopIteration as end:
            self.request, _ = end.value
            return False
        if self._limit is not None and self._elements > self._limit:
            limit = f"max.request.elements={self._limit}"
            raise TooManyElementsError(f"more than {self._limit} elements ({limit})")
        return True
