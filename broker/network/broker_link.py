"""A connection from this broker to another one, with one request in flight at a time.

Answers are received into the link's buffer, so that their records can be appended without a copy;
they are valid until the next request.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING, cast

from broker.network.links import UNPROTECTED, LinkError
from broker.network.unconnected import UNCONNECTED
from protocol.headers import request_front, response_header_bytes
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.links import Address, LinkSecurity
    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

SIZE_BYTES = 4
BUFFER_BYTES = 128 * 1024
"""Room for an answer of ordinary size. A larger one gets more, kept while such answers come."""
GULP_BYTES = 256 * 1024
"""Bytes of a large answer that have to arrive before the loop wakes to receive them
(SO_RCVLOWAT)."""


@dataclasses.dataclass(frozen=True, slots=True)
class LinkLimits:
    """Limits of an answer."""

    timeout_ms: int
    max_answer_bytes: int


class BrokerLink:
    """A `Link` over TCP; connects at the first request, and again after a break."""

    def __init__(
        self,
        name: str,
        address: Callable[[], Address | None],
        client_id: str,
        limits: LinkLimits,
        security: LinkSecurity = UNPROTECTED,
    ) -> None:
        """`address` is looked up at each connect; `name` stands for the other broker in errors."""
        self._name = name
        self._address = address
        self._client_id = client_id.encode()
        self._timeout_seconds = limits.timeout_ms / 1000
        self._max_answer_bytes = limits.max_answer_bytes
        self._security = security
        self._log_in_at: float | None = None
        """Time at which to authenticate again, by the loop's clock."""
        self._wire: _Wire | None = None
        self._correlation_id = 0
        self._turn = asyncio.Lock()

    async def ask(self, request: Request, version: int) -> Response:
        """Send one request and wait for its answer. Raises LinkError, and closes the connection."""
        async with self._turn:
            try:
                wire = self._wire
                if wire is None or wire.is_lost:
                    async with asyncio.timeout(self._timeout_seconds):
                        wire = await self._connected()
                        await self._log_in(wire)
                elif self._log_in_at is not None and wire.now() >= self._log_in_at:
                    await self._log_in(wire)
                return await self._exchange(wire, request, version)
            except TimeoutError:
                self.close()
                raise LinkError(
                    f"{self._name} has not answered {type(request).__name__} "
                    f"for {self._timeout_seconds:g} s"
                ) from None
            except (OSError, DecodeError) as error:
                self.close()
                raise LinkError(f"{self._name}: {error}") from error
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the connection; a waiting request fails with LinkError."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    async def _connected(self) -> _Wire:
        address = self._address()
        if address is None:
            raise LinkError(f"{self._name} is not known to be alive")
        loop = asyncio.get_running_loop()
        wire = _Wire(loop, self._timeout_seconds, self._max_answer_bytes)
        await self._security.connector.connect(wire, address)
        self._wire = wire
        return wire

    async def _log_in(self, wire: _Wire) -> None:
        after_seconds = await self._security.login.log_in(partial(self._exchange, wire))
        self._log_in_at = None if after_seconds is None else wire.now() + after_seconds

    async def _exchange(self, wire: _Wire, request: Request, version: int) -> Response:
        cls = type(request)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        body = request.encode(version)
        front = request_front(
            self._correlation_id, cls.API_KEY, version, self._client_id, len(body)
        )
        frame = await wire.exchange(front + body)
        correlation_id = int.from_bytes(frame[:SIZE_BYTES], "big")
        if correlation_id != self._correlation_id:
            raise LinkError(f"{self._name} answered another request than the one asked")
        start = response_header_bytes(cls.API_KEY, version)
        response, _ = cls.RESPONSE.decode_from(version, frame, start)
        return response


class _Wire(asyncio.BufferedProtocol):
    """The socket: sends one frame, receives one."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, timeout_seconds: float, max_answer_bytes: int
    ) -> None:
        self._loop = loop
        self._timeout_seconds = timeout_seconds
        self._max_answer_bytes = max_answer_bytes
        self._small = self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._filled = 0
        self._wanted = SIZE_BYTES
        self._is_size_known = False
        self._answer: asyncio.Future[memoryview] | None = None
        self._asked_at = 0.0
        self._watchdog: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport = UNCONNECTED
        self._socket: socket.socket | None = None
        """None until the connection is made, and with TLS: OpenSSL holds some of the bytes, so the
        count in the socket is not the count available.
        """
        self._low_water = 1
        self.is_lost = False
        self._has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if transport.get_extra_info("ssl_object") is None:
            self._socket = connected

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = self._has_ended = True
        self._rest()
        self._fail(LinkError(f"the connection is lost: {exc or 'closed by the other side'}"))

    def now(self) -> float:
        """The loop's time, in seconds."""
        return self._loop.time()

    async def exchange(self, frame: bytes) -> memoryview:
        """Send a frame; returns the next one received, without its size.

        It is valid until the next exchange. Raises TimeoutError.
        """
        answer: asyncio.Future[memoryview] = self._loop.create_future()
        self._answer = answer
        self._asked_at = self._loop.time()
        if self._watchdog is None:
            self._watchdog = self._loop.call_later(self._timeout_seconds, self._watch)
        self._transport.write(frame)
        return await answer

    def close(self) -> None:
        self.is_lost = True
        self._rest()
        if not self._has_ended:  # aborting one that has would end it once more, which it cannot
            self._transport.abort()
        self._fail(LinkError("hung up"))

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._filled >= SIZE_BYTES and not self._is_size_known:
            self._learn_size()
        missing = self._wanted - self._filled
        if missing > 0 or self.is_lost:
            if self._wanted > BUFFER_BYTES and not self.is_lost:
                self._wake_at(min(missing, GULP_BYTES))
            return
        self._wake_at(1)
        answer, self._answer = self._answer, None
        frame = self._buffer[SIZE_BYTES : self._wanted]
        if answer is None or self._filled > self._wanted:
            self.is_lost = True
            self._transport.abort()  # an answer without a request
        if self._wanted <= BUFFER_BYTES:
            self._buffer = self._small
        self._filled = 0
        self._wanted = SIZE_BYTES
        self._is_size_known = False
        if answer is not None and not answer.done():
            answer.set_result(frame)

    def _wake_at(self, count: int) -> None:
        """Have the loop see the socket as readable only once `count` bytes have arrived."""
        if count != self._low_water and self._socket is not None:
            self._low_water = count
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def _learn_size(self) -> None:
        size = int.from_bytes(self._buffer[:SIZE_BYTES], "big", signed=True)
        if not SIZE_BYTES <= size <= self._max_answer_bytes:
            self.is_lost = True
            self._fail(LinkError(f"an answer cannot have {size} bytes"))
            self._transport.abort()
            return
        self._is_size_known = True
        self._wanted = SIZE_BYTES + size
        if self._wanted > len(self._buffer):
            grown = memoryview(bytearray(self._wanted))
            grown[: self._filled] = self._buffer[: self._filled]
            self._buffer = grown

    def _watch(self) -> None:
        """One timer for many exchanges: most end long before it, and it is then set again."""
        self._watchdog = None
        if self._answer is None:
            return
        left = self._asked_at + self._timeout_seconds - self._loop.time()
        if left > 0:
            self._watchdog = self._loop.call_later(left, self._watch)
        else:
            self._fail(TimeoutError())

    def _rest(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None

    def _fail(self, error: Exception) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)
