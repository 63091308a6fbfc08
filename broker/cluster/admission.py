"""Registration of a broker with others: its description, and interruptible retries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from controller.features.levels import FEATURES
from controller.znodes import BrokerRegistration, Endpoint

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from config.broker import BrokerConfig
    from config.listeners.endpoints import Endpoint as Advertised

T = TypeVar("T")


class StartAbandonedError(Exception):
    """The broker was asked to stop before it had started."""


def describe_broker(
    config: BrokerConfig, advertised: Iterable[Advertised], now_ms: int
) -> BrokerRegistration:
    """Content of the broker's node; hosts and ports are the advertised ones."""
    endpoints = (Endpoint(one.name, one.host, one.port, one.protocol) for one in advertised)
    return BrokerRegistration(tuple(endpoints), config.broker_rack, now_ms, FEATURES)


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Wait for others' work; raises StartAbandonedError if `stop` is set meanwhile.

    Cancelled work has ended by then, with its cleanup. If it had just completed, its result is
    returned: the caller must be able to close it.
    """
    loop = asyncio.get_running_loop()
    doing = loop.create_task(work)
    stopping = loop.create_task(stop.wait())
    is_broken_off = True
    try:
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        is_broken_off = not doing.done()
    finally:
        stopping.cancel()
        await _end(doing)
    if is_broken_off and (doing.cancelled() or doing.exception() is not None):
        raise StartAbandonedError("stopped before the cluster had taken this broker in")
    return await doing


async def _end(doing: asyncio.Task[Any]) -> None:
    """Break work off and wait until it has ended, however often this is interrupted."""
    doing.cancel()
    interruption: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.wait({doing})
        except asyncio.CancelledError as error:
            interruption = error
    if interruption is not None:
        raise interruption
