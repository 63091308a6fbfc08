"""Sends requests for thousands of nodes to the store in flights, which overlap.

A store takes some tens of microseconds per node, all on the event loop; one request for 10,000
nodes would hold it up for half a second.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from controller.metadata_store.store import MetadataStore, Znode
    from controller.ports import Slices

T = TypeVar("T")
R = TypeVar("R")

FLIGHT = 256
"""Nodes, or transactions, passed to the store at a time: some milliseconds of work."""


async def in_flights(
    items: Sequence[T], fly: Callable[[Sequence[T]], Awaitable[list[R]]], slices: Slices
) -> list[R]:
    """The results of `fly` for all items. Raises a flight's error once all flights have ended."""

    async def depart(flight: Sequence[T]) -> list[R]:
        await slices.give_way()
        return await fly(flight)

    flights = [items[start : start + FLIGHT] for start in range(0, len(items), FLIGHT)]
    answers = await asyncio.gather(*map(depart, flights), return_exceptions=True)
    landed: list[R] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        landed += answer
    return landed


async def read_many(
    store: MetadataStore, paths: Sequence[str], slices: Slices
) -> list[Znode | None]:
    """`store.get_many` for any number of nodes."""
    return await in_flights(paths, store.get_many, slices)
