"""Waiting for metadata: who waits is kept for as long as it does, and no longer."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from broker.metadata.metadata_cache import MetadataCache

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Wanted:
    """Something to wait for, with what a request would hold."""

    def __init__(self) -> None:
        self.is_there = False

    def __call__(self) -> bool:
        return self.is_there


async def turn() -> None:
    await asyncio.sleep(0)  # noqa: TID251


def run(scenario: Callable[[MetadataCache], Coroutine[None, None, None]]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(10):
            await scenario(MetadataCache())

    asyncio.run(timed())


def test_a_wait_that_is_given_up_leaves_nothing_behind() -> None:
    async def scenario(cache: MetadataCache) -> None:
        loop = asyncio.get_running_loop()
        for end in ("cancelled", "timed out"):
            wanted = Wanted()
            gone = weakref.ref(wanted)
            waiting = loop.create_task(cache.wait_until(wanted))
            del wanted
            await turn()
            assert gone() is not None, end
            if end == "cancelled":
                waiting.cancel()
                await asyncio.wait([waiting])
            else:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(waiting, 0)
            del waiting
            gc.collect()
            assert gone() is None, end

    run(scenario)


def test_waiters_wake_in_order_after_others_were_cancelled() -> None:
    async def scenario(cache: MetadataCache) -> None:
        loop = asyncio.get_running_loop()
        wanted = [Wanted() for _ in range(4)]
        woken: list[int] = []

        async def wait(number: int) -> None:
            await cache.wait_until(wanted[number])
            woken.append(number)

        waiting = [loop.create_task(wait(number)) for number in range(4)]
        await turn()
        waiting[1].cancel()
        await turn()
        for number in (3, 1, 0):
            wanted[number].is_there = True
        cache.settle()
        cache.settle()
        await asyncio.wait([waiting[0], waiting[3]])
        assert woken == [0, 3]
        wanted[2].is_there = True
        cache.settle()
        await waiting[2]
        assert woken == [0, 3, 2]

    run(scenario)
