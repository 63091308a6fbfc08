"""A connection from this broker to another one: ask, wait, be answered.

One request is under way at a time, which is what fetchers and the controller want. An answer is
received into a buffer of its own, so that the records in it can be kept and appended as they lie.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, cast

from broker.replication.links import LinkError
from protocol.headers import request_front, response_header_bytes
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

SIZE_BYTES = 4

Address = tuple[str, int]


class PeerLink:
    """`replication.links.Link` over TCP; connects when first asked, and anew after a break."""

    def __init__(
        self,
        name: str,
        address: Callable[[], Address | None],
        client_id: str,
        timeout_ms: int,
        max_answer_bytes: int,
    ) -> None:
        """`address` is looked up at each connect; `name` is how errors call the other broker."""
        self._name = name
        self._address = address
        self._client_id = client_id.encode()
        self._timeout_seconds = timeout_ms / 1000
        self._max_answer_bytes = max_answer_bytes
        self._wire: _Wire | None = None
        self._correlation_id = 0
        self._turn = asyncio.Lock()

    async def ask(self, request: Request, version: int) -> Response:
        """Send one request and wait for its answer; raises LinkError, and hangs up."""
        async with self._turn:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    wire = await self._connected()
                    answer = await self._exchange(wire, request, version)
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
        return answer

    def close(self) -> None:
        """Hang up; who waits gets a LinkError."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    async def _connected(self) -> _Wire:
        if self._wire is not None and not self._wire.is_lost:
            return self._wire
        address = self._address()
        if address is None:
            raise LinkError(f"{self._name} is not known to be alive")
        loop = asyncio.get_running_loop()
        limit = self._max_answer_bytes
        _, self._wire = await loop.create_connection(lambda: _Wire(limit), *address)
        return self._wire

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
    """The socket: one frame out, one frame in."""

    def __init__(self, max_answer_bytes: int) -> None:
        self._max_answer_bytes = max_answer_bytes
        self._buffer = memoryview(bytearray(SIZE_BYTES))
        self._filled = 0
        self._is_body = False
        self._answer: asyncio.Future[memoryview] | None = None
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._fail(LinkError(f"the connection is lost: {exc or 'closed by the other side'}"))

    async def exchange(self, frame: bytes) -> memoryview:
        """Send a frame; returns the next one that comes, without its size."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        return await self._answer

    def close(self) -> None:
        self.is_lost = True
        self._transport.abort()
        self._fail(LinkError("hung up"))

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._filled < len(self._buffer):
            return
        complete = self._buffer
        self._filled = 0
        if self._is_body:
            self._is_body = False
            self._buffer = memoryview(bytearray(SIZE_BYTES))
            self._deliver(complete)
            return
        size = int.from_bytes(complete, "big", signed=True)
        if not SIZE_BYTES <= size <= self._max_answer_bytes:
            self._fail(LinkError(f"an answer cannot have {size} bytes"))
            self._transport.abort()
            return
        self._is_body = True
        self._buffer = memoryview(bytearray(size))

    def _deliver(self, frame: memoryview) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            self._transport.abort()
        elif not answer.done():
            answer.set_result(frame)

    def _fail(self, error: LinkError) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)
