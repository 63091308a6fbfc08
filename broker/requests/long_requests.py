"""Long requests: others are served while they are read.

A frame of 100 MB may hold thirty million topic names, which take ten seconds to read and gigabytes
to keep. So the number of elements is bounded, in all arrays of a request together, and a request is
read in slices after its first thousand. A frame that is long for its records alone, as those of
Produce are, is read at once.

The elements of all long requests together are bounded too (`queued.max.request.elements`). Those of
a request count from the beginning of its slices until its context is freed: the handler holds it,
the encoding of the answer, and a wait for records or for other brokers.

To free a million elements at once takes a third of a second. So request and answer are kept with
the context; when that is freed they are out of use, and released bit by bit.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from broker.network.request_memory import RequestMemory
from protocol.fields import Kind
from protocol.schema import Struct
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from broker.requests.context import Context
    from broker.runtime.slices import Slices
    from protocol.fields import Field
    from protocol.schema import Request

LONG_BYTES: Final = 32 * 1024
"""Largest frame that is read in one go, which takes five milliseconds at most.

Fixed, as the next one, by the longest block of the event loop.
"""
ELEMENTS_AT_ONCE = 1000
"""As many of a longer one take about a millisecond."""
FREED_AT_ONCE: Final = 1000
"""Elements: half a millisecond."""


class TooManyElementsError(DecodeError):
    """The request is well-formed, as far as it was read, and larger than this broker takes."""


class LongRequest:
    """One request that is being read."""

    __slots__ = ("_limit", "_steps", "elements")

    def __init__(self, steps: Generator[int, None, tuple[Request, int]], limit: int | None) -> None:
        """`steps` are those of a step decoder; `limit` is how many elements it may have."""
        self._steps = steps
        self._limit = limit
        self.elements = 0
        """Number of elements announced so far; in the end, that of the whole request."""

    def read_at_once(self) -> Request | None:
        """Read it if it is short after all; None if it is not. Raises UNDECODABLE."""
        while (request := self._go_on()) is None:
            if self.elements > ELEMENTS_AT_ONCE:
                return None
        return request

    async def read_on(self, slices: Slices) -> Request:
        """Read the rest, serving others between the slices. Raises UNDECODABLE."""
        await slices.give_way()
        while (request := self._go_on()) is None:
            await slices.give_way()
        return request

    def _go_on(self) -> Request | None:
        """The request, once it is whole."""
        try:
            self.elements = next(self._steps)
        except StopIteration as end:
            request: Request
            request, _ = end.value
            return request
        if self._limit is not None and self.elements > self._limit:
            limit = f"max.request.elements={self._limit}"
            raise TooManyElementsError(f"more than {self._limit} elements ({limit})")
        return None


class HeldElements:
    """Stands for the elements of one long request: they count until this is freed."""

    __slots__ = ("__weakref__", "_count")

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count


class ElementBudget:
    """Bounds the elements of all long requests of a broker, as `RequestMemory` does bytes.

    A request may begin while any budget is left, so that it can always be finished; the most in
    memory is the limit and one request. The number of elements is known once a request is read;
    until then it counts as the maximum.
    """

    def __init__(self, limit: int) -> None:
        """`limit` in elements. To be made on the event loop that serves the requests."""
        soon = asyncio.get_running_loop().call_soon_threadsafe
        self._memory = RequestMemory(limit, soon)

    @property
    def used(self) -> int:
        """Elements counted now."""
        return self._memory.used

    def hold(self, count: int) -> HeldElements:
        """Count elements, whether there is room or not, until the object returned is freed."""
        held = HeldElements(count)
        self._memory.note(held)
        return held

    async def read(self, long: LongRequest, most: int, context: Context) -> Request:
        """Read the rest of a request when there is room for `most` elements, its upper bound.

        Its elements then count as long as its context lives. Raises UNDECODABLE.
        """
        while not self._memory.has_room():
            await self._room()
        reserved = self.hold(most)
        request = await long.read_on(context.broker.slices())
        context.held = self.hold(long.elements)
        del reserved
        return request

    async def _room(self) -> None:
        """Return when there may be room; those that wait are called in their order."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def call() -> None:
            if not turn.done():
                turn.set_result(None)

        self._memory.wait(call)
        try:
            await turn
        finally:
            self._memory.forget(call)


class Remains:
    """Holds on to messages until it is freed itself."""

    __slots__ = ("_count", "_kept", "_later")

    def __init__(self, later: Callable[[Iterator[None]], None], count: object) -> None:
        """`later` is `Leftovers.add`; `count` is held until all is freed (`HeldElements`)."""
        self._later = later
        self._count = count
        self._kept: list[Any] = []

    def keep(self, message: object) -> None:
        """Have it freed with the others."""
        self._kept.append(message)

    def __del__(self) -> None:
        if self._kept:
            self._later(_freed(self._kept, self._count))


def _freed(kept: list[Any], _count: object) -> Iterator[None]:
    """Release elements, innermost last, from copies of their containers: others may hold these."""
    left = [[one] for one in kept]
    kept.clear()
    done = 0
    while left:
        elements = left[-1]
        if not elements:
            left.pop()
            continue
        arrays = _arrays_of(type(elements[-1]))
        if not arrays:
            done += min(len(elements), FREED_AT_ONCE)
            del elements[-FREED_AT_ONCE:]
        else:
            left += _copies(elements.pop(), arrays)
            done += 1
        if done >= FREED_AT_ONCE:
            done = 0
            yield


def _copies(one: object, arrays: tuple[str, ...]) -> list[list[Any]]:
    """Arrays of a struct, to be freed after it."""
    inner = [getattr(one, name) for name in arrays]
    return [list(each) if isinstance(each, list | tuple) else [each] for each in inner if each]


_ARRAYS: dict[type, tuple[str, ...]] = {}


def _arrays_of(kind: type) -> tuple[str, ...]:
    """Fields that hold lists, or structs with lists."""
    found = _ARRAYS.get(kind)
    if found is None:
        found = ()
        if issubclass(kind, Struct):
            found = tuple(field.name for field in kind.FIELDS if _has_array(field))
        _ARRAYS[kind] = found
    return found


def _has_array(field: Field) -> bool:
    if field.kind is Kind.STRUCT:
        return field.struct is not None and bool(_arrays_of(field.struct))
    return bool(field.kind is Kind.ARRAY)
