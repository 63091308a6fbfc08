"""Clients of a broker that has just joined others."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from broker.deferred import Deferred
from broker.holding import holding
from broker.metadata_cache import MetadataCache
from protocol.messages.group_membership import HeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


def begin(inner: Deferred[Any]) -> tuple[Deferred[Any], MetadataCache]:
    """A held request, whose handler is going to return `inner`."""
    metadata = MetadataCache()
    metadata.is_awaited = True
    loop = asyncio.get_running_loop()

    def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return loop.create_task(work, name=name)

    broker = SimpleNamespace(metadata=metadata, spawn=spawn)
    handle = cast("Callable[..., Any]", holding(lambda *_: inner, lambda *_: None))
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return handle(SimpleNamespace(broker=broker), request), metadata


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)  # noqa: TID251


def test_the_answer_comes_once_the_cluster_is_known() -> None:
    async def scenario() -> None:
        inner: Deferred[Any] = Deferred()
        answer, metadata = begin(inner)
        await turns()
        inner.complete("too early to be asked")
        await turns()
        assert not answer.is_complete
        metadata.settle()
        await turns()
        assert answer.is_complete

    asyncio.run(scenario())


def test_who_hangs_up_frees_what_waits_for_it() -> None:
    async def scenario() -> None:
        freed: list[str] = []
        answer, metadata = begin(Deferred(on_abandon=lambda: freed.append("handler")))
        metadata.settle()
        await turns()

        answer.abandon()

        assert freed == ["handler"]

    asyncio.run(scenario())
