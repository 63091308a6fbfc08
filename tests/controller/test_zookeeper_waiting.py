"""Requests to ZooKeeper that wait for their turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controller.zookeeper.address import parse_address
from controller.zookeeper.session import NotConnectedError, ZooKeeperSession


def test_one_that_was_given_up_does_not_keep_the_others_from_hearing_of_a_break() -> None:
    async def scenario() -> None:
        session = ZooKeeperSession(parse_address("127.0.0.1:1"), 1000, max_in_flight=1)
        loop = asyncio.get_running_loop()
        given_up, waits = (loop.create_future() for _ in range(2))
        waiting: list[tuple[object, asyncio.Future[Any]]] = [(None, given_up), (None, waits)]
        session._waiting.extend(waiting)
        given_up.cancel()

        session._settle_answered()

        with pytest.raises(NotConnectedError):
            await waits

    asyncio.run(scenario())
