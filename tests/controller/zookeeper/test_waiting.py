"""Requests to ZooKeeper that wait for their turn."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

import pytest

from controller.zookeeper.address import parse_address
from controller.zookeeper.kazoo_client import NotConnectedError
from controller.zookeeper.session import ZooKeeperSession, _Answer
from controller.zookeeper.store import ZooKeeperStore
from tests.controller.zookeeper_stores import MAX_REQUEST_BYTES

MEANWHILE_SECONDS = 0.2


class AnsweredMeanwhile(deque[_Answer]):
    """Lets another thread have its answer noted while the first is being noted, if it can."""

    def __init__(self, other: _Answer) -> None:
        super().__init__()
        self._other: _Answer | None = other
        self.thread = threading.Thread(target=other.set, args=("other",))

    def append(self, answer: _Answer) -> None:
        super().append(answer)
        if self._other is not None:
            self._other = None
            self.thread.start()
            self.thread.join(MEANWHILE_SECONDS)


def test_a_cancelled_request_does_not_keep_others_from_failing_on_a_disconnect() -> None:
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


def test_answers_that_two_threads_have_at_once_both_arrive() -> None:
    async def scenario() -> None:
        session = ZooKeeperSession(parse_address("127.0.0.1:1"), 1000, max_in_flight=1)
        loop = asyncio.get_running_loop()
        one, other = loop.create_future(), loop.create_future()
        meanwhile = AnsweredMeanwhile(_Answer(other, session))
        session._answered = meanwhile  # type: ignore[assignment]

        _Answer(one, session).set("one")

        async with asyncio.timeout(10):
            assert (await one, await other) == ("one", "other")
        meanwhile.thread.join()

    asyncio.run(scenario())


def test_a_watch_or_listener_that_raises_does_not_block_the_others() -> None:
    told: list[str] = []

    def fail(*_: object) -> None:
        raise ValueError("odd")

    async def scenario() -> None:
        session = ZooKeeperSession(parse_address("127.0.0.1:1"), 1000, max_in_flight=1)
        store = ZooKeeperStore(session, MAX_REQUEST_BYTES)
        asyncio.get_running_loop().set_exception_handler(lambda *_: told.append("failed"))
        store.on_interruption(fail)
        store.on_interruption(lambda: told.append("interrupted"))
        for path in ("/a", "/b", "/c"):
            store._pending(path, fail)
            store._pending(path, lambda change: told.append(change.path))

        session._connection_stands(1)
        assert told == ["interrupted"]
        while len(told) < 7:
            await asyncio.sleep(0)  # noqa: TID251

    asyncio.run(scenario())
    assert sorted(told) == ["/a", "/b", "/c", "failed", "failed", "failed", "interrupted"]


def test_a_request_that_fails_twice_makes_room_for_one_other() -> None:
    async def scenario() -> None:
        session = ZooKeeperSession(parse_address("127.0.0.1:1"), 1000, max_in_flight=1)
        future = asyncio.get_running_loop().create_future()
        session._in_flight = 1
        answer = _Answer(future, session)

        answer.set_exception(NotConnectedError())
        answer.set_exception(NotConnectedError())

        with pytest.raises(NotConnectedError):
            await future
        assert session._in_flight == 0

    asyncio.run(scenario())


def test_a_request_that_cannot_be_made_is_answered_so_and_makes_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        session = ZooKeeperSession(parse_address("127.0.0.1:1"), 1000, max_in_flight=1)

        def refuse(*_: object) -> None:
            raise ValueError("no such request")

        monkeypatch.setattr(session._client, "submit", refuse)
        future = asyncio.get_running_loop().create_future()

        session._submit(object(), future)

        with pytest.raises(ValueError, match="no such request"):
            await future
        assert session._in_flight == 0

    asyncio.run(scenario())
