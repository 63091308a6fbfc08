"""Sends responses, in order, with file regions going from the page cache by `sendfile`.

A transport knows bytes only, and `loop.sendfile` costs a task each. So: while the transport holds
nothing back (its high-water mark is zero, hence "not paused" means "nothing buffered"), a region is
sent with `os.sendfile` on the socket itself; when the socket is full, one chunk is read and written
through the transport, whose `resume_writing` then tells us to go on. TLS connections always read.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
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

    __slots__ = ("_on_drained", "_parts", "_run", "_socket", "_transport", "is_paused")

    def __init__(
        self, transport: asyncio.Transport, socket_number: int, on_drained: Callable[[], None]
    ) -> None:
        """`socket_number` is the descriptor to `sendfile` to, or -1 when bytes must pass TLS."""
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._socket = socket_number
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
                self._transport.write(head)
            elif self._send_region(head):
                parts.popleft()

    def _send_region(self, rest: _Rest) -> bool:
        """Send some of a region; returns whether it is done."""
        if self._socket >= 0:
            try:
                sent = os.sendfile(self._socket, rest.descriptor(), rest.position, rest.length)
            except BlockingIOError:
                sent = 0
            if sent:
                rest.skip(sent)
                return not rest.length
        chunk = os.pread(rest.descriptor(), min(rest.length, CHUNK_BYTES), rest.position)
        if not chunk:
            msg = "log file is shorter than the region that was to be sent"
            raise OSError(msg)
        self._transport.write(chunk)
        rest.skip(len(chunk))
        return not rest.length


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
