"""One client connection: frames in, responses out, in the order of the requests.

Bytes are received directly into the connection's `FrameBuffer`, which decides their ownership. A
request whose answer is deferred mutes the connection, as in Apache Kafka, unless the handler marked
the deferral as ordered only. The slots in `_answers` keep the order.

The memory of one connection is bounded: answers are sent as soon as `FLUSH_BYTES` have gathered,
and no request is handled while any of them is unsent, so it holds one answer and `FLUSH_BYTES` at
most; deferred answers are bounded over all connections (`InFlight`), large requests by
`RequestMemory`. Nor does one connection keep the others waiting: after `TURN_MS` of its requests it
is their turn.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct as structs
from collections import deque
from typing import TYPE_CHECKING, cast

from broker.network.foreign_protocols import recognise
from broker.network.frame_buffer import FrameBuffer
from broker.network.send_queue import SendQueue, region_sender
from broker.network.unconnected import UNCONNECTED, release
from broker.runtime.deferred import Deferred
from broker.runtime.timers import extended

if TYPE_CHECKING:
    from broker.network.client import Client
    from broker.network.connection_services import ConnectionServices, Gate
    from protocol.schema import Part

    Answer = list[Part] | Deferred[list[Part] | None]

logger = logging.getLogger(__name__)

_UNPACK_SIZE = structs.Struct(">i").unpack_from
SIZE_BYTES = 4
FLUSH_BYTES = 64 * 1024
"""Bytes of answers collected before they are sent together.

Fixed: it trades system calls for memory, and bounds the memory for a slow reader.
"""
TURN_MS = 5
"""Time for which the requests of one connection are handled before others get their turn.

Fixed: with the longest single request it must stay within the event loop's 10 ms.
"""
LOOK_BYTES = 8 * 1024
"""Requests handled between two looks at the clock, of which the first begins a turn.

Fixed: one of `LONG_BYTES`, four times this, takes up to 5 ms, so these take little more than one.
"""
FRAME_BYTES = 512
"""Bytes that each counts besides its size. Fixed: sixteen small ones take about a millisecond."""


class Connection(asyncio.BufferedProtocol):
    """Protocol of one accepted socket."""

    def __init__(self, services: ConnectionServices, peer: Client) -> None:
        self.services = services
        self._dispatch = services.dispatcher.dispatch
        self._peer = peer
        self._max_request_bytes = services.max_request_bytes
        self._buffer = FrameBuffer(services.memory, services.max_buffer_bytes)
        self._answers: deque[Answer] = deque()
        self._blocking: Deferred[list[Part] | None] | None = None
        self._is_reading = True
        self._is_closing = False
        self._rest: asyncio.TimerHandle | None = None
        self._is_held = False
        self._is_turn_due = False
        self._is_processing = False
        self._is_at_end = False
        self._transport: asyncio.Transport = UNCONNECTED
        self._outgoing = SendQueue(UNCONNECTED, None, self._process)

    @property
    def listener(self) -> str:
        """Name of the listener it came in on."""
        return self._peer.listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the client and prepare the socket."""
        self._transport = cast("asyncio.Transport", transport)
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._outgoing = SendQueue(self._transport, region_sender(transport), self._process)
        if self._is_held:
            self._transport.pause_reading()
        refusal = self._peer.connected(self, transport.get_extra_info("peername"))
        if refusal is not None:
            self.close(refusal)

    def guard(self, gate: Gate | None) -> None:
        """Have `gate` serve all frames until it calls `admit`; None admits at once."""
        if gate is not None:
            self._dispatch = gate.dispatch
            self._max_request_bytes = gate.max_frame_bytes

    def admit(self) -> None:
        """Let requests through to the dispatcher: the client is authenticated."""
        self._dispatch = self.services.dispatcher.dispatch
        self._max_request_bytes = self.services.max_request_bytes

    def hold(self) -> None:
        """Read nothing until `begin`; call it before the connection is made."""
        self._is_held = True

    def begin(self) -> None:
        """Read from now on."""
        self._is_held = False
        if not self._is_closing:
            self._transport.resume_reading()

    def end_in(self, milliseconds: int) -> None:
        """Read nothing, and end after a while: its address connects too often."""
        self._is_closing = True
        self._transport.pause_reading()
        extended(None, milliseconds, self._transport.abort)

    def rest(self, milliseconds: int) -> None:
        """Handle no request for a while: the client exceeds a quota. Answers are sent meanwhile."""
        if not self._is_closing:
            self._rest = extended(self._rest, milliseconds, self._wake)

    def _wake(self) -> None:
        self._rest = None
        self._take_turn()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Abandon deferred answers and free the buffers."""
        self._is_closing = True
        if self._rest is not None:
            self._rest.cancel()
        self._let_go()
        self._outgoing.release()
        self._peer.disconnected(self)
        release(self._transport)

    def _let_go(self) -> None:
        """Abandon deferred answers and free the received bytes."""
        self.services.memory.forget(self._process)
        self.services.in_flight.count -= len(self._answers)
        for answer in self._answers:
            if isinstance(answer, Deferred):
                answer.abandon()
        self._answers.clear()
        self._blocking = None
        self._buffer.release()

    def close(self, reason: str = "", last: list[Part] | None = None) -> None:
        """Close the connection once queued answers and the `last` are sent; a reason is logged.

        Until then it reads and handles nothing. A client that does not read is waited for as long
        as one that is idle (`look_after`), and at the stop of the broker as `Listeners.close` says.
        """
        if self._is_closing:
            return
        self._is_closing = True
        if reason:
            self.services.closures.tell(self._peer.address, reason)
        if last is not None:
            self._outgoing.add(last)
        self._outgoing.flush()
        if self._outgoing.is_empty:
            self._transport.close()
            return
        # The transport would drop the parts queued here, as it does not know them.
        self._transport.pause_reading()
        # Not from here: the caller may be the task behind one of the answers.
        asyncio.get_running_loop().call_soon(self._let_go)

    def abort(self) -> None:
        """Close the connection now; unsent answers are lost."""
        self._is_closing = True
        self._transport.abort()

    def look_after(self, now_ms: int, limit_ms: int) -> None:
        """Called periodically: free memory of an idle connection, close one idle for too long.

        Idle is one that sends no request, reads none of an answer, and either awaits none, has
        closed its side or is being closed. `limit_ms` is the longest it may be (negative: no
        limit), `now_ms` is monotonic.
        """
        if self._outgoing.has_moved:
            self._outgoing.has_moved = False
            self._peer.is_active = True
        idle_ms = self._peer.idle_ms(now_ms)
        if (self._answers and not self._is_at_end) or not idle_ms:
            return
        if not self._is_closing:
            self._buffer.trim()
        if 0 <= limit_ms <= idle_ms:
            if self._outgoing.is_empty and not self._is_closing:
                self.close()
            else:
                self.abort()  # closing would wait for the client to read

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Free space behind the bytes received."""
        return self._buffer.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes arrived."""
        self._peer.is_active = True
        self._buffer.end += nbytes
        self._process()

    def eof_received(self) -> bool:
        """Handle the client's requests after it has closed its side, as Apache Kafka does.

        A producer with acks=0 leaves as soon as it has sent its records, some of them in requests
        not served yet. Returns whether the transport is to stay open: also to send queued answers.
        """
        self._is_at_end = True
        is_served = self._blocking is None or not self._blocking.is_unserved
        return not (is_served and self._is_all_handled and self._outgoing.is_empty)

    @property
    def _is_all_handled(self) -> bool:
        """Return whether no complete frame is left."""
        buffer = self._buffer
        held = buffer.end - buffer.start - SIZE_BYTES
        return held < 0 or held < _UNPACK_SIZE(buffer.frames(), buffer.start)[0]

    def pause_writing(self) -> None:
        """Keep answers and handle no more requests: the client reads too slowly."""
        self._outgoing.pause()

    def resume_writing(self) -> None:
        """The client has caught up.

        Going on may close the transport, which must not happen within its callback: it would be
        closed twice.
        """
        asyncio.get_running_loop().call_soon(self._outgoing.resume)

    def _process(self) -> None:
        """Handle all complete frames that may be handled now, and send the answers together.

        A handler may complete an earlier answer of this connection and re-enter here: the outer
        call then goes on with the frames that this released. A closing connection handles none,
        and ends once all is sent.
        """
        if self._is_closing or self._is_processing:
            if self._is_closing and self._outgoing.is_empty:
                self._transport.close()
            return
        self._is_processing = True
        is_turn_over = False
        try:
            is_turn_over = self._take_frames()
            if not self._is_closing:
                self._outgoing.flush()
                self._tidy()
                if self._is_at_end and not self._answers and self._is_all_handled:
                    self.close()
        except Exception:
            logger.exception("%s: connection aborted", self._peer.address)
            self.abort()
        finally:
            self._is_processing = False
        if is_turn_over:
            self._have_turn()

    def _have_turn(self) -> None:
        """Go on with the requests received, in the next turn of the loop."""
        if not self._is_turn_due:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_turn_due = False
        self._process()

    def _take_frames(self) -> bool:
        """Handle frames until blocked or the turn is over; return whether it was the turn."""
        buffer = self._buffer
        memory = buffer.frames()
        clock = self.services.clock
        in_flight = self.services.in_flight
        outgoing = self._outgoing
        answers = self._answers
        end_ms = weight = 0
        # Neither a deferred nor an unsent answer may hold the next request up, nor a quota. This is
        # written out here, for each request: a call would cost more than all of it.
        while (
            not self._is_closing
            and self._blocking is None
            and (self._rest is None or buffer.is_counted)
            and not outgoing.is_paused
            and (not answers or in_flight.count < in_flight.limit)
        ):
            body = buffer.start + SIZE_BYTES
            held = buffer.end - body
            if held < 0:
                break
            (size,) = _UNPACK_SIZE(memory, buffer.start)
            if not 0 <= size <= self._max_request_bytes:
                self._refuse_size(bytes(memory[buffer.start : body]), size)
                break
            if held < size:
                del memory  # so that the buffer may be used again
                try:
                    if not buffer.make_room(SIZE_BYTES + size):
                        self.services.memory.wait(self._process)
                except OSError as error:
                    self._close_without_memory(error)
                break
            # Before a request, so that one that comes alone, as most large ones do, costs no look.
            weight += size + FRAME_BYTES
            if weight >= LOOK_BYTES and (end_ms or held > size):
                weight = 0
                now_ms = clock.monotonic_ms()
                end_ms = end_ms or now_ms + TURN_MS
                if now_ms >= end_ms:
                    return True
            buffer.start = body + size
            answer = self._dispatch(memory[body : buffer.start], self._peer, self)
            if answer is not None:
                self._take_answer(answer)
        return False

    def _refuse_size(self, prefix: bytes, size: int) -> None:
        limit, usual = self._max_request_bytes, self.services.max_request_bytes
        key = "socket.request.max.bytes" if limit == usual else "sasl.server.max.receive.size"
        self.close(recognise(prefix) or f"frame of {size} bytes ({key}={limit})")

    def _close_without_memory(self, error: OSError) -> None:
        """The system refuses to map a buffer; no other OSError is called that."""
        self.close(f"no memory for its requests: {error}")

    def _take_answer(self, answer: Answer) -> None:
        """Queue an answer for sending, unless it or one before it is deferred."""
        if isinstance(answer, list) and not self._answers:
            outgoing = self._outgoing
            outgoing.add(answer)
            if outgoing.size >= FLUSH_BYTES:
                outgoing.flush()
            return
        self._answers.append(answer)
        self.services.in_flight.count += 1
        if isinstance(answer, Deferred):
            self._await(answer)

    def _await(self, answer: Deferred[list[Part] | None]) -> None:
        if not answer.is_ordered_only and not answer.is_complete:
            self._blocking = answer

        def answered(_: object) -> None:
            self._answered(answer)

        def failed(error: Exception) -> None:
            self.close(f"no answer could be made: {error!r}")

        answer.then(answered, failed)

    def _answered(self, answer: Deferred[list[Part] | None]) -> None:
        """A deferred answer has come: send all that are next in order, then go on."""
        answers = self._answers
        while answers:
            head = answers[0]
            parts: list[Part] | None
            if isinstance(head, Deferred):
                if not head.is_complete:
                    break
                parts = head.value
            else:
                parts = head
            answers.popleft()
            self.services.in_flight.count -= 1
            if parts is not None and not self._is_closing:
                self._outgoing.add(parts)
        if self._blocking is answer:
            self._blocking = None
        if self._is_processing or self._is_closing:
            return
        self._outgoing.flush()
        if not self._buffer.is_empty or self._is_at_end:
            # Not from here: the caller may be about to complete hundreds of answers.
            self._have_turn()

    def _tidy(self) -> None:
        """Make room for the next read; stop reading while the buffer is full of waiting frames."""
        buffer = self._buffer
        try:
            buffer.tidy()
        except OSError as error:
            self._close_without_memory(error)
        has_room = buffer.end != buffer.capacity
        if has_room != self._is_reading and not self._is_closing:
            self._is_reading = has_room
            if has_room:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
