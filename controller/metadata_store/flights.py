"""What is asked of the store for thousands of nodes: in flights, which do not wait for each other.

A store takes some tens of microseconds for each node that is asked for, all on the event loop; one
question about 10,000 nodes would hold up everybody for half a second.
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
"""Nodes, or transactions, that are handed to the store in one go: some milliseconds of work."""


async def in_flights(
    items: Sequence[T], fly: Callable[[Sequence[T]], Awaitable[list[R]]], slices: Slices
) -> list[R]:
    """What `fly` answers to all items. Raises what a flight raises, once none is under way."""

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
    """`store.get_many` for as many nodes as there may be."""
    return await in_flights(paths, store.get_many, slices)
