"""Commands to a controller are always answered, and never done when the answer was no."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

import controller.controller
from controller.event_queue import Event, EventQueue
from controller.metadata_store.store import StoreUnavailableError
from protocol.errors import ApiError, ErrorCode
from tests.controller.harness import Cluster, run_cluster, turns

if TYPE_CHECKING:
    from controller.active_controller import ActiveController


async def _nothing() -> None:
    """Handle an event."""


def test_a_command_interrupted_by_the_end_of_the_term_answers_not_controller() -> None:
    """The store was interrupted after the write and before the brokers got its requests."""

    async def scenario(cluster: Cluster) -> None:
        controller = cluster.members[0].controller

        async def work(_: ActiveController) -> str:
            controller.interrupted()
            return "done"

        asked = asyncio.get_running_loop().create_task(controller.perform("work", work))
        await turns()
        assert asked.done()
        with pytest.raises(ApiError) as refused:
            await asked
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert controller.is_active  # again, in a term whose brokers are told everything

    run_cluster(scenario, 0)


def test_a_failed_command_is_answered_and_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller.controller, "RETRY_AFTER_SECONDS", 0)

    async def scenario(cluster: Cluster) -> None:
        member = cluster.members[0].controller
        attempts = []

        async def work(active: ActiveController) -> None:
            attempts.append(active)
            raise StoreUnavailableError("/", "away")

        with pytest.raises(ApiError) as refused:
            await member.perform("work", work)
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        await turns()
        assert len(attempts) == 1

    run_cluster(scenario, 0)


def test_the_error_of_a_refused_command_is_freed_with_its_answer() -> None:
    raised: list[weakref.ref[ApiError]] = []

    def refusal() -> ApiError:
        error = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        raised.append(weakref.ref(error))
        return error

    async def work(_: ActiveController) -> None:
        raise refusal()

    async def scenario(cluster: Cluster) -> None:
        with contextlib.suppress(ApiError):
            await cluster.members[0].controller.perform("work", work)
        await turns()
        assert [one() for one in raised] == [None]

    gc.disable()
    try:
        run_cluster(scenario, 0)
    finally:
        gc.enable()


def test_equal_events_are_one_until_taken_and_single_ones_never_are() -> None:
    async def scenario() -> None:
        queue = EventQueue()
        for _ in range(2):
            queue.put(Event(("topics",), _nothing))
            queue.put_single("stopped", _nothing)
        first = await queue.take()
        assert first.key == ("topics",)
        queue.put(first)
        names = [(await queue.take()).key[0] for _ in range(3)]
        assert names == ["stopped", "stopped", "topics"]

    asyncio.run(scenario())
