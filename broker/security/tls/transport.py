"""TLS between a transport and a protocol: to the one it is a protocol, to the other a transport.

asyncio's own does handshakes on the event loop, keeps 256 KB for each connection, and takes one
context for all connections of a server, so that a new certificate would need a new server. Here the
kernel writes into one buffer that all connections share, since its content is handed to OpenSSL at
once; OpenSSL decrypts straight into the protocol's own buffer.

    socket --recv--> shared buffer --copy--> incoming BIO --decrypt--> the protocol's buffer
    protocol --encrypt--> outgoing BIO --copy--> transport --send--> socket

The protocol gets its connection at once and not after the handshake, so that it is counted from the
beginning; it receives nothing before the handshake is done, and must not write before. Memory for a
slow protocol is bounded by the shared buffer: while it reads nothing, or a thread has the
`SSLObject` (`handshakes`), nothing is received.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol, cast

from broker.security.tls.failed_handshakes import explain
from broker.security.tls.handshakes import go_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.runtime.deferred import Deferred

logger = logging.getLogger(__name__)

RECEIVE_BYTES = 256 * 1024
"""Read at a time. Fixed: there is one such buffer, however many connections there are."""
PIECE_BYTES = 64 * 1024
"""Handed to OpenSSL at a time, either way. Fixed: its buffers keep the largest size that they had,
for each connection, and larger pieces are slower, as they do not stay in the processor's cache."""
LOOK_BYTES = 4
"""By which a peer that does not speak TLS is recognised."""
_HIDDEN = ("region_sender", "sslcontext")
"""Capabilities of a transport that TLS cannot offer: bytes sent past it would not be encrypted."""

_UNCONNECTED = asyncio.Transport()
"""Placeholder before the connection is made."""
_NOBODY = asyncio.BufferedProtocol()
"""Stands for the protocol of a connection that is lost, so that the two do not hold each other."""
_shared = memoryview(bytearray(RECEIVE_BYTES))


class State(Enum):
    """Of one connection; a transition leads to the next one or to CLOSED."""

    HANDSHAKE = auto()
    OPEN = auto()
    CLOSED = auto()
    """Closed by us: nothing is received or sent any more."""


class Steps(Protocol):
    """Does the steps of handshakes; `Handshakes` is one."""

    def step(self, end: ssl.SSLObject) -> Deferred[bool]:
        """Process received bytes; gives whether it is done. Fails with ssl.SSLError."""


class Events(Protocol):
    """Hears how a handshake ends: one of these is called, once."""

    def secured(self, certificate: bytes | None) -> str | None:
        """All went well; the peer's certificate, in DER. Returns why it is refused all the same."""

    def failed(self, reason: str) -> None:
        """Report that there will be no TLS."""

    def lost(self) -> None:
        """The connection has ended before."""


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """One connection."""

    def __init__(
        self,
        protocol: asyncio.BufferedProtocol,
        wrap: Callable[[ssl.MemoryBIO, ssl.MemoryBIO], ssl.SSLObject],
        steps: Steps,
        events: Events,
    ) -> None:
        """`wrap` creates the `SSLObject` on the incoming and outgoing BIOs."""
        super().__init__()
        self._protocol = protocol
        self._steps = steps
        self._events: Events | None = events
        """Until the handshake has ended."""
        self._below: asyncio.Transport = _UNCONNECTED
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = wrap(self._incoming, self._outgoing)
        self._state = State.HANDSHAKE
        self._is_wanted = True
        """True if the protocol reads."""
        self._is_stepping = False
        """True if a thread has the SSLObject."""
        self._is_light = False
        """True if the next step of the handshake costs next to nothing."""
        self._is_going_on = False
        self._is_at_end = False
        """True if the peer sends nothing more."""
        self._first = b""
        """The first bytes of the peer, to identify a protocol other than TLS."""

    @property
    def below(self) -> asyncio.Transport:
        """The transport that sends and receives."""
        return self._below

    # Called by the transport below.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected; a client begins the handshake."""
        self._below = cast("asyncio.Transport", transport)
        self._protocol.connection_made(self)
        if self._state is State.HANDSHAKE and not self._tls.server_side:
            self._step()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._finish()
        protocol, self._protocol = self._protocol, _NOBODY
        protocol.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """The shared buffer: received bytes go to OpenSSL before another transport receives."""
        return _shared

    def buffer_updated(self, nbytes: int) -> None:
        """Encrypted bytes have come."""
        if self._state is State.CLOSED:
            return
        received = _shared[:nbytes]
        if self._state is State.OPEN:
            self._take(received)
            return
        self._incoming.write(received)
        if len(self._first) < LOOK_BYTES:
            self._first = (self._first + bytes(_shared[: min(nbytes, LOOK_BYTES)]))[:LOOK_BYTES]
        self._step()

    def eof_received(self) -> bool:
        """The peer has closed its side, with or without saying so in TLS."""
        if self._state is not State.OPEN:
            return False
        is_new, self._is_at_end = not self._is_at_end, True
        return bool(self._protocol.eof_received()) if is_new else True

    def pause_writing(self) -> None:
        """The socket is full."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """The socket accepts more."""
        self._protocol.resume_writing()

    # Called by the protocol above.

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """As of the transport below, but `ssl_object` is known, and ways past TLS are not."""
        if name == "ssl_object":
            return self._tls
        return default if name in _HIDDEN else self._below.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Encrypt and send."""
        assert self._state is not State.HANDSHAKE
        if self._state is State.OPEN:
            view = memoryview(data)
            try:
                for start in range(0, len(view), PIECE_BYTES):
                    self._encrypt(view[start : start + PIECE_BYTES])
            except ssl.SSLError as error:
                self._end(explain(error, b""))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Of the transport below, which has all that is unsent."""
        self._below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Encrypted bytes that are unsent."""
        return self._below.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`."""
        self._is_wanted = False
        self._below.pause_reading()

    def resume_reading(self) -> None:
        """Deliver received bytes, from a later callback, and further ones."""
        self._is_wanted = True
        if self._state is State.OPEN:
            self._go_on_soon()
        if not self._is_stepping:
            self._below.resume_reading()

    def is_reading(self) -> bool:
        """Return whether the protocol reads."""
        return self._is_wanted and not self.is_closing()

    def is_closing(self) -> bool:
        """Return whether it was closed, by either side."""
        return self._state is State.CLOSED or self._below.is_closing()

    def close(self) -> None:
        """Send TLS's close alert, and close once everything is sent."""
        if self._state is State.OPEN:
            with contextlib.suppress(ssl.SSLError):  # it would rather wait for the peer's answer
                self._tls.unwrap()
            self._send()
        self._finish()
        self._below.close()

    def abort(self) -> None:
        """Close at once."""
        self._finish()
        self._below.abort()

    # Handshake.

    def fail(self, reason: str) -> None:
        """End the handshake for a reason of others."""
        events, self._events = self._events, None
        if events is not None:
            self._state = State.CLOSED
            events.failed(reason)
            self._below.close()

    def _step(self) -> None:
        """Go on with the handshake: on a thread, unless there is little left to compute."""
        if self._is_light:
            try:
                self._stepped(go_on(self._tls))
            except ssl.SSLError as error:
                self._step_failed(error)
            return
        self._is_stepping = True
        self._below.pause_reading()
        self._steps.step(self._tls).then(self._stepped, self._step_failed)

    def _stepped(self, is_all: bool) -> None:
        self._is_stepping = False
        if self._state is not State.HANDSHAKE:
            return
        # Once a server has answered, a client that shows no certificate has only to prove the keys.
        tls = self._tls
        self._is_light = bool(
            tls.server_side and self._outgoing.pending and tls.context.verify_mode is ssl.CERT_NONE
        )
        self._send()
        if is_all and not self._is_welcome():
            return
        if self._is_wanted:
            self._below.resume_reading()

    def _is_welcome(self) -> bool:
        """The handshake is done: whether the peer may stay."""
        events, self._events = self._events, None
        assert events is not None
        self._state = State.OPEN
        reason = events.secured(self._tls.getpeercert(binary_form=True))
        if reason is not None:
            self._end(reason)
            return False
        self._go_on_soon()
        return True

    def _step_failed(self, error: Exception) -> None:
        self._is_stepping = False
        if self._state is State.HANDSHAKE:
            self._send()  # the alert
            self.fail(explain(error, self._first))

    # Records.

    def _take(self, received: memoryview) -> None:
        """Decrypt in pieces; bytes behind a pause of the protocol are kept encrypted."""
        for start in range(0, len(received), PIECE_BYTES):
            if not self._is_wanted or self._state is not State.OPEN:
                self._incoming.write(received[start:])
                return
            self._incoming.write(received[start : start + PIECE_BYTES])
            self._decrypt()

    def _decrypt(self) -> None:
        """Deliver received bytes while the protocol reads."""
        protocol, tls, incoming = self._protocol, self._tls, self._incoming
        is_more = True
        while is_more and self._is_wanted and self._state is State.OPEN:
            buffer = memoryview(protocol.get_buffer(-1))
            size, filled, count = len(buffer), 0, 1
            try:
                while filled < size:
                    # With a buffer it returns how many bytes, whatever the stub says.
                    count = tls.read(size - filled, buffer[filled:])  # type: ignore[assignment]
                    filled += count
                    if not (incoming.pending or tls.pending()):
                        is_more = False
                        break
                    if not count:  # the peer said that it sends nothing more
                        break
            except ssl.SSLWantReadError:
                is_more = False
            except ssl.SSLError as error:
                self._end(explain(error, b""))
                return
            if filled:
                protocol.buffer_updated(filled)
            if not count:
                is_more = False
                self._note_end()
        if self._outgoing.pending and self._state is State.OPEN:
            self._send()

    def _encrypt(self, piece: memoryview[Any]) -> None:
        written = 0
        while written < len(piece):  # a record at a time, for any size
            written += self._tls.write(piece[written:])
        self._below.write(self._outgoing.read())

    def _note_end(self) -> None:
        if not self.is_closing() and not self.eof_received():
            self.close()

    def _go_on_soon(self) -> None:
        if not self._is_going_on and (self._incoming.pending or self._tls.pending()):
            self._is_going_on = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_going_on = False
        if self._state is State.OPEN:
            self._decrypt()

    def _send(self) -> None:
        if self._outgoing.pending:
            self._below.write(self._outgoing.read())

    def _end(self, reason: str) -> None:
        """End the connection, after notifying the peer in TLS, if possible."""
        self._send()
        logger.info("%s: connection closed: %s", self._below.get_extra_info("peername"), reason)
        self._finish()
        self._below.close()

    def _finish(self) -> None:
        self._state = State.CLOSED
        events, self._events = self._events, None
        if events is not None:
            events.lost()
