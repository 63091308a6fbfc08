"""A client's connection: requests leave at once, as many as it likes; answers come in their order.

What no broker may do is seen here: an answer that nobody asked for, answers out of order, an
answer that cannot be read. That one never comes shows when a run must settle and does not.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from broker.network.links import LinkError
from protocol.headers import request_front, response_header_bytes
from protocol.wire import DecodeError
from tests.simulation.checks.refusals import report
from tests.simulation.machine.network import READ_BYTES
from tests.simulation.machine.sockets import SOCKETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.machine.sockets import End
    from tests.simulation.machine.virtual_loop import VirtualLoop

SIZE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, and when what of it was there."""

    response: Any
    kind: str
    """The request's class."""
    sent_at: float
    left_at: float
    """Time at which the last byte of the request was handed to the network: writes are cut
    short."""
    began_at: float
    """Arrival time of its first byte."""
    previous_at: float
    """Time at which the previous answer was complete, and the client read again."""


@dataclass(slots=True)
class _Asked:
    request: Any
    version: int
    sent_at: float
    answer: asyncio.Future[Answer]
    left_at: float = math.inf


class Pipeline(asyncio.BufferedProtocol):
    """One connection to a broker; see `ask`."""

    def __init__(self, loop: VirtualLoop, name: str, life: int) -> None:
        self.name = name
        self.life = life
        """The broker's incarnation that it is connected to."""
        self.is_lost = False
        self._loop = loop
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._asked: deque[tuple[int, _Asked]] = deque()
        self._leaving: deque[tuple[int, _Asked]] = deque()
        """Requests of which the network has not taken all, by where each ends in the stream."""
        self._written_bytes = 0
        self._taken_bytes = 0
        self._correlation_id = 0
        self._scratch = memoryview(bytearray(READ_BYTES))
        self._received = bytearray()
        self._began_at = 0.0
        self._previous_at = 0.0
        self.on_part: Callable[[], None] | None = None
        """Hears that part of an answer is here, and not yet all of it."""

    def ask(self, request: Any, version: int) -> asyncio.Future[Answer]:
        """Send a request now; its answer comes, or a LinkError once the connection is over."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        answer.add_done_callback(_see)
        if self.is_lost:
            answer.set_exception(LinkError("the connection is lost"))
            return answer
        asked = _Asked(request, version, self._loop.now, answer)
        self._correlation_id += 1
        self._asked.append((self._correlation_id, asked))
        frame = self._frame(request, version)
        self._leaving.append((self._written_bytes + len(frame), asked))
        self._write(frame)
        return answer

    def __str__(self) -> str:
        waiting = [
            f"{type(one.request).__name__} since {one.sent_at:.3f}" for _, one in self._asked
        ]
        return f"{'lost' if self.is_lost else 'open'}: {waiting[0] if waiting else 'nothing'}"

    def is_quiet_for(self, seconds: float) -> bool:
        """Return whether the oldest request has waited longer than that for its answer."""
        return bool(self._asked) and self._loop.now - self._asked[0][1].sent_at > seconds

    def tell(self, request: Any, version: int) -> None:
        """Send a request that has no answer."""
        self._correlation_id += 1
        self._write(self._frame(request, version))

    def hang_up(self, *, is_reset: bool = False) -> None:
        """End it; as a reset, the broker learns that nothing it sends arrives any more."""
        if not self.is_lost:
            self._over(LinkError("hung up"))
            if is_reset:
                self._end.reset()
            self._transport.abort()

    def rest(self, seconds: float) -> None:
        """Read nothing for a while."""
        if not self.is_lost:
            self._previous_at = self._loop.now + seconds
            self._transport.pause_reading()
            self._loop.call_later(seconds, self._go_on)

    @property
    def _end(self) -> End:
        return SOCKETS[self._transport.get_extra_info("socket").fileno()].end

    def _go_on(self) -> None:
        if not self.is_lost:
            self._transport.resume_reading()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._end.on_sent = self._taken

    def connection_lost(self, exc: Exception | None) -> None:
        self._over(LinkError(f"the connection is lost: {exc or 'closed by the other side'}"))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        if not self._received:
            self._began_at = self._loop.now
        received = self._received
        received += self._scratch[:nbytes]
        while len(received) >= SIZE_BYTES and not self.is_lost:
            size = int.from_bytes(received[:SIZE_BYTES], "big")
            if len(received) < SIZE_BYTES + size:
                break
            frame = bytes(received[SIZE_BYTES : SIZE_BYTES + size])
            del received[: SIZE_BYTES + size]
            self._answered(frame)
            self._previous_at = max(self._previous_at, self._loop.now)
            self._began_at = self._loop.now
        if received and self.on_part is not None:
            self.on_part()

    def _frame(self, request: Any, version: int) -> bytes:
        body: bytes = request.encode(version)
        front = request_front(
            self._correlation_id, request.API_KEY, version, self.name.encode(), len(body)
        )
        return front + body

    def _write(self, frame: bytes) -> None:
        self._written_bytes += len(frame)
        self._transport.write(frame)

    def _taken(self, count: int) -> None:
        """The network has taken so many bytes more."""
        self._taken_bytes += count
        while self._leaving and self._leaving[0][0] <= self._taken_bytes:
            self._leaving.popleft()[1].left_at = self._loop.now

    def _answered(self, frame: bytes) -> None:
        correlation_id = int.from_bytes(frame[:SIZE_BYTES], "big")
        if not self._asked:
            report(
                f"{self.name}: an answer came that nobody asked for (to request {correlation_id})"
            )
            return
        expected, asked = self._asked.popleft()
        if correlation_id != expected:
            report(f"{self.name}: the answer to {correlation_id} came, where {expected} was next")
            return
        cls = type(asked.request)
        try:
            start = response_header_bytes(cls.API_KEY, asked.version)
            response, _ = cls.RESPONSE.decode_from(asked.version, memoryview(frame), start)
        except DecodeError as error:
            report(f"{self.name}: an answer to {cls.__name__} cannot be read: {error}")
            return
        if not asked.answer.done():
            asked.answer.set_result(
                Answer(
                    response,
                    cls.__name__,
                    asked.sent_at,
                    asked.left_at,
                    self._began_at,
                    self._previous_at,
                )
            )

    def _over(self, error: LinkError) -> None:
        self.is_lost = True
        asked, self._asked = self._asked, deque()
        for _, one in asked:
            if not one.answer.done():
                one.answer.set_exception(error)


def _see(answer: asyncio.Future[Answer]) -> None:
    """An error is no news to whoever does not wait for it any more."""
    if not answer.cancelled():
        answer.exception()
