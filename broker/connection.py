"""One client connection: frames in, responses out, in the order of the requests.

Bytes are received straight into the connection's own buffer, so that a record batch is patched
and written to the log from where the kernel put it, without a copy. The buffer is reused for the
next frames as soon as the handler returns; a handler that keeps record bytes must copy them.

A request whose answer is deferred stops the connection (as in Apache, which mutes the channel),
unless the handler marked the deferral as ordered only. The slots in `_answers` keep the order.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct as structs
from collections import deque
from typing import TYPE_CHECKING, cast

from broker.deferred import Deferred
from broker.outgoing import Outgoing
from broker.strangers import recognise

if TYPE_CHECKING:
    from broker.dispatch import Dispatcher
    from broker.peer import Peer
    from protocol.schema import Part

logger = logging.getLogger(__name__)

_UNPACK_SIZE = structs.Struct(">i").unpack_from
SIZE_BYTES = 4
INITIAL_BUFFER_BYTES = 128 * 1024
"""Room for the five requests of 16 KB that a Java producer has in flight at its defaults."""
SPARE_BUFFER_BYTES = 128 * 1024
"""A buffer is grown to hold this much beside its frame, so that one read brings many frames."""


class Connection(asyncio.BufferedProtocol):
    """Protocol of one accepted socket."""

    def __init__(self, dispatcher: Dispatcher, peer: Peer, max_request_bytes: int) -> None:
        self._dispatcher = dispatcher
        self._peer = peer
        self._max_request_bytes = max_request_bytes
        self._buffer = bytearray(INITIAL_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self._answers: deque[list[Part] | Deferred[list[Part] | None] | None] = deque()
        self._blocking: Deferred[list[Part] | None] | None = None
        self._is_reading = True
        self._is_closing = False
        self._is_held = False
        self._outgoing: Outgoing = cast("Outgoing", None)
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)

    @property
    def listener(self) -> str:
        """Name of the listener it came in on."""
        return self._peer.listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the peer and prepare the socket."""
        self._transport = cast("asyncio.Transport", transport)
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        is_tls = transport.get_extra_info("ssl_object") is not None
        self._outgoing = Outgoing(
            self._transport, -1 if is_tls else connected.fileno(), self._process
        )
        if self._is_held:
            self._transport.pause_reading()
        refusal = self._peer.connected(self, transport.get_extra_info("peername"))
        if refusal is not None:
            self.close(refusal)

    def hold(self) -> None:
        """Do not listen to the peer until `begin`; only before the connection is made."""
        self._is_held = True

    def begin(self) -> None:
        """Listen to the peer from now on."""
        self._is_held = False
        self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Free what waits for this connection."""
        self._is_closing = True
        for answer in self._answers:
            if isinstance(answer, Deferred):
                answer.abandon()
        self._answers.clear()
        self._blocking = None
        self._outgoing.release()
        self._peer.disconnected(self)

    def close(self, reason: str = "") -> None:
        """Hang up; a reason is logged, once."""
        if self._is_closing:
            return
        self._is_closing = True
        if reason:
            logger.warning("%s: connection closed: %s", self._peer.address, reason)
        self._outgoing.flush()
        self._transport.close()

    def is_idle(self, now_ms: int, limit_ms: int) -> bool:
        """Whether nothing came for so long, at a monotonic `now_ms`, and nothing is owed."""
        idle_ms = self._peer.idle_ms(now_ms)
        return idle_ms >= limit_ms and not self._answers and self._outgoing.is_empty

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Where the next bytes go: behind what is there."""
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes arrived."""
        self._end += nbytes
        self._process()

    def pause_writing(self) -> None:
        """The peer reads slower than we write: answers are kept, no more requests are taken."""
        self._outgoing.pause()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._outgoing.resume()

    def _process(self) -> None:
        """Handle all whole frames that may be handled now, and send the answers together."""
        while self._take_frames():
            self._outgoing.flush()  # a region of a file held the next frame up
        if not self._is_closing:
            self._outgoing.flush()
            self._tidy()

    def _take_frames(self) -> bool:
        """Handle frames while nothing holds the connection up.

        Returns whether some were handled and unsent answers are all that may hold up the next.
        """
        outgoing = self._outgoing
        count = 0
        while not self._is_closing and self._blocking is None and outgoing.is_empty:
            body = self._start + SIZE_BYTES
            held = self._end - body
            if held < 0:
                return False
            (size,) = _UNPACK_SIZE(self._buffer, self._start)
            if not 0 <= size <= self._max_request_bytes:
                self._refuse_size(size)
                return False
            if held < size:
                self._make_room(SIZE_BYTES + size)
                return False
            self._start = body + size
            answer = self._dispatcher.dispatch(self._view[body : self._start], self._peer, self)
            count += 1
            if isinstance(answer, list) and not self._answers:
                outgoing.add(answer)
            elif answer is not None:
                self._keep_in_order(answer)
        return count > 0

    def _refuse_size(self, size: int) -> None:
        stranger = recognise(bytes(self._view[self._start : self._start + SIZE_BYTES]))
        limit = f"socket.request.max.bytes={self._max_request_bytes}"
        self.close(stranger or f"frame of {size} bytes ({limit})")

    def _keep_in_order(self, answer: list[Part] | Deferred[list[Part] | None]) -> None:
        """Take an answer that is to come, or one that must wait for those before it."""
        self._answers.append(answer)
        if isinstance(answer, Deferred):
            self._await(answer)

    def _await(self, answer: Deferred[list[Part] | None]) -> None:
        if not answer.is_ordered_only and not answer.is_complete:
            self._blocking = answer
        answer.then(lambda _: self._answered(answer))

    def _answered(self, answer: Deferred[list[Part] | None]) -> None:
        """A deferred answer is there: send all that are now next in order, then go on reading."""
        while self._answers:
            head = self._answers[0]
            if isinstance(head, Deferred):
                if not head.is_complete:
                    break
                self._answers.popleft()
                self._send(head.value)
            else:
                self._answers.popleft()
                self._send(head)
        if self._blocking is answer:
            self._blocking = None
            self._process()
        elif not self._is_closing:
            self._outgoing.flush()

    def _send(self, parts: list[Part] | None) -> None:
        if parts is not None and not self._is_closing:
            self._outgoing.add(parts)

    def _make_room(self, needed: int) -> None:
        """Make the buffer hold a frame of `needed` bytes, from its front unless it does already."""
        if self._start + needed <= len(self._buffer) > self._end:
            return
        held = self._end - self._start
        if len(self._buffer) < needed:
            grown = bytearray(needed + SPARE_BUFFER_BYTES)
            grown[:held] = self._view[self._start : self._end]
            self._replace(grown)
        elif self._start:
            self._view[:held] = bytes(self._view[self._start : self._end])
        self._start = 0
        self._end = held

    def _tidy(self) -> None:
        """Keep room for the next read; stop reading while the buffer is full of waiting frames."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._buffer) and self._start:
            self._make_room(0)
        has_room = self._end < len(self._buffer)
        if has_room != self._is_reading and not self._is_closing:
            self._is_reading = has_room
            if has_room:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _replace(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)
