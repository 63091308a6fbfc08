"""Sends responses, in order, with file regions going from the page cache by `sendfile`.

A transport knows bytes only, and `loop.sendfile` costs a task each. So: while the transport holds
nothing back (its high-water mark is zero, hence "not paused" means "nothing buffered"), a region is
sent with `os.sendfile` on the socket itself, and what stands before it so that it leaves with it.
When the socket is full, the loop tells us when it no longer is; since it watches the socket for the
transport already, it is asked about a second descriptor of it. TLS connections read the file.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.schema import Part

INLINE_REGION_BYTES = 32 * 1024
"""Smaller regions are read and sent together with what stands around them: one system call less."""

_BYTES = (bytes, bytearray, memoryview)
"""A tuple, as `bytes | bytearray` in a loop would make a type each time round."""

CHUNK_BYTES = 256 * 1024
"""How much of a region is read at once when `sendfile` cannot be used."""


class Readable(Protocol):
    """An open file that can be read at a position or sent from."""

    def fileno(self) -> int:
        """Descriptor, valid while the object lives."""
        ...


class Region(Protocol):
    """A piece of a file standing in a response (`storage.log` makes them)."""

    file: Readable
    position: int
    length: int

    def tobytes(self) -> bytes:
        """Read the piece."""
        ...


class Outgoing:
    """The unsent rest of one connection's responses."""

    __slots__ = ("_on_drained", "_parts", "_run", "_socket", "_transport", "_twin", "is_paused")

    def __init__(
        self, transport: asyncio.Transport, socket_number: int, on_drained: Callable[[], None]
    ) -> None:
        """`socket_number` is the descriptor to `sendfile` to, or -1 when bytes must pass TLS."""
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._socket = socket_number
        self._twin: socket.socket | None = None
        """The same socket under a descriptor of our own, from the first region on."""
        self._on_drained = on_drained
        self._parts: deque[bytes | _Rest] = deque()
        self._run: list[bytes | bytearray | memoryview] = []
        self.is_paused = False

    @property
    def is_empty(self) -> bool:
        """Whether all was handed to the kernel: if not, the peer reads slower than we answer."""
        return not self._parts and not self.is_paused

    def add(self, parts: list[Part]) -> None:
        """Queue one whole response, size prefix included; `flush` sends it.

        Answers to requests that came together leave together: a system call costs more than a
        response of ordinary size.
        """
        run = self._run
        for part in parts:
            if isinstance(part, _BYTES):
                run.append(part)
            elif len(part) <= INLINE_REGION_BYTES:
                run.append(part.tobytes())  # type: ignore[attr-defined]
            else:
                self._parts.append(b"".join(run))
                run.clear()
                self._parts.append(_Rest(part))  # type: ignore[arg-type]

    def flush(self) -> None:
        """Send what was queued, as far as the socket takes it."""
        if self._run:
            data = b"".join(self._run)
            self._run.clear()
            if not self._parts and not self.is_paused:
                self._transport.write(data)
                return
            self._parts.append(data)
        self.pump()

    def release(self) -> None:
        """The connection is gone."""
        if self._twin is not None:
            asyncio.get_running_loop().remove_writer(self._twin.fileno())
            self._twin.close()
            self._twin = None
        self._parts.clear()

    def pause(self) -> None:
        """The transport holds bytes back."""
        self.is_paused = True

    def resume(self) -> None:
        """The transport has sent all that it held."""
        self.is_paused = False
        self.pump()
        if self.is_empty:
            self._on_drained()

    def pump(self) -> None:
        """Send until all is gone or the socket is full."""
        parts = self._parts
        while parts and not self.is_paused:
            head = parts[0]
            if isinstance(head, bytes):
                parts.popleft()
                if parts and self._socket >= 0:
                    self._send_before_region(head)
                else:
                    self._transport.write(head)
            elif self._send_region(head):
                parts.popleft()

    def _send_before_region(self, data: bytes) -> None:
        """Send bytes that shall not leave before some of the region behind them does."""
        if self._twin is None:
            self._twin = socket.socket(fileno=os.dup(self._socket))
        try:
            sent = self._twin.send(data, socket.MSG_MORE)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._parts.appendleft(data[sent:])
            self._wait_for_room()

    def _send_region(self, rest: _Rest) -> bool:
        """Send some of a region; returns whether it is done."""
        if self._socket < 0:
            sent = self._send_copy(rest)
        else:
            try:
                sent = os.sendfile(self._socket, rest.descriptor(), rest.position, rest.length)
            except BlockingIOError:
                self._wait_for_room()
                return False
        if not sent:
            msg = "log file is shorter than the region that was to be sent"
            raise OSError(msg)
        rest.skip(sent)
        return not rest.length

    def _send_copy(self, rest: _Rest) -> int:
        chunk = os.pread(rest.descriptor(), min(rest.length, CHUNK_BYTES), rest.position)
        self._transport.write(chunk)
        return len(chunk)

    def _wait_for_room(self) -> None:
        """Go on once the socket, which is full, takes more."""
        assert self._twin is not None
        self.is_paused = True
        # By number: asked for a socket that it does not know, a selector describes it in words.
        asyncio.get_running_loop().add_writer(self._twin.fileno(), self._go_on)

    def _go_on(self) -> None:
        assert self._twin is not None
        asyncio.get_running_loop().remove_writer(self._twin.fileno())
        try:
            self.resume()
        except OSError:  # the peer is gone, or the file; nothing of it may be sent any more
            self._transport.abort()


class _Rest:
    """What is left of a region. Holds its file, so that the descriptor outlives deletion."""

    __slots__ = ("_file", "length", "position")

    def __init__(self, region: Region) -> None:
        self._file = region.file
        self.position = region.position
        self.length = region.length

    def descriptor(self) -> int:
        return self._file.fileno()

    def skip(self, count: int) -> None:
        self.position += count
        self.length -= count
