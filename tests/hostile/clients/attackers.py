"""Connections that send hostile frames: several at once, none waiting long for its answers.

What is under way is bounded, since a broker that is flooded answers late, and rightly so: runs of
frames pass a gate, and leave it when they are answered or have waited for a moment. A request that
waits for others (a member that joins, a fetch for records) then holds nobody up.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from typing import TYPE_CHECKING, Final, cast

from tests.hostile.answers import Answers, Expected
from tests.hostile.frames.blocks import Block, Manner, joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.findings import Findings
    from tests.hostile.frames.frame import Frame
    from tests.hostile.frames.names import Identifiers

ATTACKERS: Final = 64
UNDER_WAY: Final = 6
"""Runs whose answers are not overdue."""

MOMENT_SECONDS: Final = 0.05
"""After which a run does not count as under way."""

PATIENCE_SECONDS: Final = 1.0
"""Time that a connection waits for answers, since the last bytes came."""

CONNECT_SECONDS: Final = 20.0
SOURCES: Final = 8
"""Local addresses to connect from: each has as many ports as there are."""

DRIBBLED_BYTES: Final = 120
PIECE_BYTES: Final = 4
"""Between two looks at whether the broker has hung up."""

HARD_CLOSE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of no seconds: closing resets."""


class Stranger(asyncio.Protocol):
    """One connection, with what it has sent and not been answered."""

    def __init__(self, expected: Expected) -> None:
        self.expected = expected
        self.changed = asyncio.Event()
        self.is_over = False
        self.transport: asyncio.Transport = cast("asyncio.Transport", None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.expected.received(data)
        self.changed.set()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.expected.ended(by_peer=not self.is_over)
        self.is_over = True
        self.changed.set()

    async def settled(self, seconds: float) -> None:
        """Wait until all is answered, the connection is over, or nothing came for so long."""
        while len(self.expected) and not self.is_over and not self.expected.is_wrong:
            self.changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self.changed.wait()
            except TimeoutError:
                return

    def leave(self) -> None:
        """Close, whatever there is to come."""
        self.is_over = True
        self.transport.abort()

    def reset(self) -> None:
        """Have the peer see a reset."""
        connected: socket.socket = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HARD_CLOSE)
        self.leave()


class Attack:
    """Sends blocks of frames until there are no more."""

    def __init__(
        self, port: int, known: Identifiers, findings: Findings, frames_per_second: float
    ) -> None:
        """`frames_per_second` of 0 is as fast as it goes."""
        self._port = port
        self._known = known
        self._findings = findings
        self._rate = frames_per_second
        self._gate = asyncio.Semaphore(UNDER_WAY)
        self._began = 0.0
        self._connections = 0
        self.answers = Answers(known, findings)
        self.sent = 0
        self.sent_bytes = 0
        self.withheld = 0
        """Frames that would have harmed lawfully."""

    async def run(self, blocks: Iterator[Block], attackers: int = ATTACKERS) -> None:
        """Send all of them."""
        self._began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(attackers):
                group.create_task(self._attacker(blocks))

    async def _attacker(self, blocks: Iterator[Block]) -> None:
        for block in blocks:
            await self._deliver(block)

    async def _deliver(self, block: Block) -> None:
        stranger: Stranger | None = None
        for run in block.runs(self._known):
            if run[0].harm:
                self.withheld += 1
                continue
            if stranger is None or stranger.is_over:
                stranger = await self._connect()
                if stranger is None:
                    return
            await self._keep_pace(len(run))
            async with _Passage(self._gate):
                await self._send(stranger, run, block.manner)
            if len(stranger.expected) or not run[-1].is_whole or _ends(block.manner):
                stranger.leave()
        if stranger is not None:
            stranger.leave()

    async def _connect(self) -> Stranger | None:
        loop = asyncio.get_running_loop()
        self._connections += 1
        source = f"127.0.1.{1 + self._connections % SOURCES}"
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, stranger = await loop.create_connection(
                    lambda: Stranger(Expected(self.answers, self._findings)),
                    "127.0.0.1",
                    self._port,
                    local_addr=(source, 0),
                )
        except (OSError, TimeoutError) as error:
            self._findings.add("no connection", repr(error))
            return None
        return stranger

    async def _send(self, stranger: Stranger, run: list[Frame], manner: Manner) -> None:
        stranger.expected.sent(run)
        for frame in run:
            self._findings.sent(frame)
        data = joined(run)
        self.sent += len(run)
        self.sent_bytes += len(data)
        transport = stranger.transport
        if manner is Manner.DRIBBLE:
            await self._dribble(stranger, data)
        else:
            transport.write(data)
        if manner is Manner.HALF_CLOSE:
            with contextlib.suppress(OSError):
                transport.write_eof()
        elif manner is Manner.LEAVE:
            return
        elif manner is Manner.RESET:
            stranger.changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(MOMENT_SECONDS):
                    await stranger.changed.wait()
            stranger.reset()
            return
        await stranger.settled(PATIENCE_SECONDS if run[-1].is_whole else MOMENT_SECONDS)

    async def _dribble(self, stranger: Stranger, data: bytes) -> None:
        """Byte by byte, as far as that takes no time; the rest at once."""
        connected: socket.socket = stranger.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for position in range(min(len(data), DRIBBLED_BYTES)):
            if stranger.is_over or stranger.transport.is_closing():
                return
            stranger.transport.write(data[position : position + 1])
            if position % PIECE_BYTES == 0:
                await asyncio.sleep(0)
        stranger.transport.write(data[DRIBBLED_BYTES:])

    async def _keep_pace(self, frames: int) -> None:
        if self._rate:
            ahead = (self.sent + frames) / self._rate - (time.monotonic() - self._began)
            if ahead > 0:
                await asyncio.sleep(ahead)


def _ends(manner: Manner) -> bool:
    return manner in {Manner.LEAVE, Manner.RESET, Manner.HALF_CLOSE}


class _Passage:
    """Through the gate, for a moment at most: who waits longer is not in the way."""

    def __init__(self, gate: asyncio.Semaphore) -> None:
        self._gate = gate
        self._is_inside = False

    async def __aenter__(self) -> None:
        await self._gate.acquire()
        self._is_inside = True
        self._timer = asyncio.get_running_loop().call_later(MOMENT_SECONDS, self._leave)

    async def __aexit__(self, *_: object) -> None:
        self._timer.cancel()
        self._leave()

    def _leave(self) -> None:
        if self._is_inside:
            self._is_inside = False
            self._gate.release()
