"""Blocks of producer ids: one is taken for all who wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.coordinators.producer_id_blocks import ProducerIdBlocks
from controller.metadata_store.store import StoreUnavailableError
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

SECONDS = 10.0


class Blocks:
    """Allocator whose blocks, or errors, the test sets."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[range]] = []
        self.ids = ProducerIdBlocks(self._allocate)

    async def _allocate(self) -> range:
        answer: asyncio.Future[range] = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        return await answer


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)  # noqa: TID251


def run(scenario: Callable[[Blocks], Coroutine[None, None, None]]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(SECONDS):
            await scenario(Blocks())

    asyncio.run(timed())


def test_concurrent_requests_share_one_block_of_producer_ids() -> None:
    async def scenario(blocks: Blocks) -> None:
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(blocks.ids.obtain()) for _ in range(100)]
        await turn()
        blocks.asked[0].set_result(range(1000))

        assert sorted(await asyncio.gather(*waiting)) == list(range(100))
        assert len(blocks.asked) == 1

    run(scenario)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (
            StoreUnavailableError("/latest_producer_id_block", "away"),
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ),
        (ApiError(ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER),
        (ValueError("odd"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failed_allocation_fails_all_waiting_requests(error: Exception, code: ErrorCode) -> None:
    async def scenario(blocks: Blocks) -> None:
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(blocks.ids.obtain()) for _ in range(100)]
        await turn()
        blocks.asked[0].set_exception(error)

        first, *others = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(first, Exception)
        assert {one.code for one in others if isinstance(one, ApiError)} == {code}
        assert len(blocks.asked) == 1
        again = loop.create_task(blocks.ids.obtain())
        await turn()
        blocks.asked[1].set_result(range(7, 9))
        assert await again == 7

    run(scenario)


def test_a_cancelled_allocation_is_repeated_by_the_next_waiting_request() -> None:
    async def scenario(blocks: Blocks) -> None:
        loop = asyncio.get_running_loop()
        first, second, third = [loop.create_task(blocks.ids.obtain()) for _ in range(3)]
        await turn()
        second.cancel()
        await turn()
        assert len(blocks.asked) == 1
        first.cancel()
        await turn()
        blocks.asked[1].set_result(range(3, 5))

        assert await third == 3
        assert first.cancelled()

    run(scenario)
