"""Searches of a log by time, without holding up the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.runtime.compute_pool import ComputePool
    from broker.runtime.slices import Slices
    from storage.segment.time_search import Found, Search


async def searched(search: Search[Found], slices: Slices, compute_pool: ComputePool) -> Found:
    """Finish a search: its steps in slices, and what would take long beside the event loop."""
    handed: Found = None
    while True:
        await slices.give_way()
        try:
            work = search.send(handed)
        except StopIteration as end:
            found: Found = end.value
            return found
        handed = None
        if work is not None:
            try:
                handed = await compute_pool.result(work)
            except Exception as error:
                search.throw(error)  # an error of the disk is one of the log directory
                raise
