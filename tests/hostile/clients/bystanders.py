"""Connections that send nothing wrong and still cost: they never read, claim much, or idle."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from protocol.headers import request_front
from protocol.messages.fetch import FetchRequest
from protocol.messages.metadata import MetadataRequest
from tests.hostile.frames import names

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from protocol.schema import Request

CLAIMED_BYTES: Final = 100 * 1024 * 1024
SMALL_RECEIVE_BUFFER: Final = 4096
REQUESTS_AT_ONCE: Final = 200
REQUESTS_IN_ALL: Final = 4000
PAUSE_SECONDS: Final = 0.2
CONNECT_SECONDS: Final = 20.0
PER_SECOND: Final = 250
"""Connections opened: more would be an attack of another kind."""

DEAF_SECONDS: Final = (20.0, 60.0)
CLAIM_SECONDS: Final = (0.0, 4.0)
IDLE_SECONDS: Final = (10.0, 60.0)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Number of bystanders of each kind, at any time."""

    deaf: int
    """Ask and never read an answer."""
    claiming: int
    """Claim a frame of 100 MB, send a little of it, and leave or stall."""
    idle: int
    """Come, say nothing, and go."""


class Bystanders:
    """Keeps a crowd connected until it is dismissed."""

    def __init__(self, port: int, crowd: Crowd, seed: int) -> None:
        self._port = port
        self._crowd = crowd
        self._seed = seed
        self._tasks: list[asyncio.Task[None]] = []
        self._turn = asyncio.Lock()
        self.opened: Counter[str] = Counter()
        """Connections so far, by kind."""
        self.refused = 0

    def start(self) -> None:
        """Have them come, a few at a time."""
        kinds = (
            (self._crowd.deaf, self._be_deaf),
            (self._crowd.claiming, self._claim),
            (self._crowd.idle, self._idle),
        )
        for count, behave in kinds:
            for number in range(count):
                chance = Random(f"{self._seed}/{behave.__name__}/{number}")
                self._tasks.append(asyncio.create_task(self._forever(behave, chance)))

    async def dismiss(self) -> None:
        """Have all of them leave, and wait until they have."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _forever(
        self, behave: Callable[[socket.socket, Random], Coroutine[None, None, None]], chance: Random
    ) -> None:
        while True:
            async with self._turn:
                await asyncio.sleep(1 / PER_SECOND)
            with socket.socket() as connection:
                connection.setblocking(False)
                if behave == self._be_deaf:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_RECEIVE_BUFFER)
                if not await self._connect(connection, chance):
                    continue
                self.opened[behave.__name__.strip("_")] += 1
                with contextlib.suppress(OSError):
                    await behave(connection, chance)

    async def _connect(self, connection: socket.socket, chance: Random) -> bool:
        connection.bind((f"127.0.2.{1 + chance.randrange(8)}", 0))
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                loop = asyncio.get_running_loop()
                await loop.sock_connect(connection, ("127.0.0.1", self._port))
        except (OSError, TimeoutError):
            self.refused += 1
            await asyncio.sleep(PAUSE_SECONDS)
            return False
        return True

    async def _be_deaf(self, connection: socket.socket, chance: Random) -> None:
        """Pipeline requests with long answers, for as long as the broker takes them."""
        requests = b"".join(
            _request(chance.choice(_LONG_ANSWERS), number) for number in range(REQUESTS_AT_ONCE)
        )
        loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(chance.uniform(*DEAF_SECONDS)):
                for _ in range(REQUESTS_IN_ALL // REQUESTS_AT_ONCE):
                    await loop.sock_sendall(connection, requests)
                    await asyncio.sleep(PAUSE_SECONDS)
                await asyncio.sleep(DEAF_SECONDS[1])

    async def _claim(self, connection: socket.socket, chance: Random) -> None:
        """Claim a large frame; leave at once, or stall with some of it sent."""
        size = CLAIMED_BYTES - chance.randrange(1000)
        some = bytes(chance.choice((0, 8, 8, 1000, 100_000)))
        loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLAIM_SECONDS[1]):
                await loop.sock_sendall(connection, struct.pack(">i", size) + some)
        await asyncio.sleep(chance.uniform(*CLAIM_SECONDS))

    async def _idle(self, _connection: socket.socket, chance: Random) -> None:
        await asyncio.sleep(chance.uniform(*IDLE_SECONDS))


def _request(what: tuple[Request, int], number: int) -> bytes:
    request, version = what
    body = request.encode(version)
    front = request_front(number, int(request.API_KEY), version, b"deaf", len(body))
    return front + body


def _fetch() -> FetchRequest:
    partition = FetchRequest.Topic.Partition(
        partition=0, fetch_offset=0, partition_max_bytes=1_000_000
    )
    topic = FetchRequest.Topic(topic=names.BULKY_TOPIC, partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1_000_000, topics=[topic])


_LONG_ANSWERS: Final[tuple[tuple[Request, int], ...]] = (
    (MetadataRequest(topics=None), 8),
    (_fetch(), 11),
)
