"""Callers that wait for deletions: each until its topics are settled, or until it is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from controller.ports import Slices


class DeletionWaits:
    """Waiters by topic. One that is cancelled, as by a time limit, leaves nothing behind."""

    def __init__(self, slices: Callable[[], Slices]) -> None:
        """Start without waiters."""
        self._slices = slices
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}

    @property
    def topics(self) -> Collection[str]:
        """The topics that callers wait for."""
        return self._waiters.keys()

    async def wait(
        self, topics: Iterable[str], still_open: Callable[[], Awaitable[Collection[str]]]
    ) -> None:
        """Return once each topic is settled; those not `still_open` are already.

        `still_open` is checked as each wait begins, so that none is missed.
        """
        loop = asyncio.get_running_loop()
        waiting: dict[str, asyncio.Future[None]] = {}
        try:
            async for topic in self._slices().each(topics):
                waiting[topic] = loop.create_future()
                self._waiters.setdefault(topic, set()).add(waiting[topic])
            self.settle(waiting.keys() - set(await still_open()))
            await asyncio.gather(*waiting.values())
        finally:
            for topic, waiter in waiting.items():
                self._forget(topic, waiter)

    def settle(self, topics: Iterable[str]) -> None:
        """Note topics that are deleted, or whose deletion waits for a dead broker."""
        for topic in topics:
            for waiter in self._waiters.pop(topic, ()):
                if not waiter.done():
                    waiter.set_result(None)

    def settle_all(self) -> None:
        """Wake all callers: this broker is no longer the controller."""
        self.settle(list(self._waiters))

    def _forget(self, topic: str, waiter: asyncio.Future[None]) -> None:
        others = self._waiters.get(topic, set())
        others.discard(waiter)
        if not others:
            self._waiters.pop(topic, None)
