"""Sends responses, in order, with file regions going from the page cache by `sendfile`.

A transport sends bytes only, and `loop.sendfile` costs a task each. So, while the transport buffers
nothing (its high-water mark is zero, hence "not paused" means "nothing buffered"), a region is sent
with `os.sendfile` on the socket itself, together with the bytes before it. When the socket is full,
the loop calls back once it is writable; since it watches the socket for the transport already, it
watches a second descriptor of it. TLS connections read the file.

The queue is bounded by its connection, which handles no further request while it is not empty.
Small regions are read only as they are sent: one run of `RUN_BYTES` is in memory at a time,
whatever the size of the response.

Nothing raises here. If the client is gone, or a file cannot be read, this connection is aborted,
and the caller goes on with the next one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.schema import Part

logger = logging.getLogger(__name__)

INLINE_REGION_BYTES = 32 * 1024
"""Smaller regions are read and sent with the bytes around them, which saves a system call."""

RUN_BYTES: Final = 256 * 1024
"""Bytes gathered for one write, or read of a region that cannot be sent from its file."""

_BYTES: Final = (bytes, bytearray, memoryview)
"""A tuple, as `bytes | bytearray` in a loop would make a type each time round."""

_PEER_IS_GONE: Final = (ConnectionError, TimeoutError)


class Readable(Protocol):
    """An open file that can be read at a position or sent from."""

    def fileno(self) -> int:
        """Descriptor, valid while the object lives."""

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer at the end of the file."""


class Region(Protocol):
    """A piece of a file standing in a response; `storage.segment.slices.Slice` is one."""

    file: Readable
    position: int
    length: int


class RegionSender(Protocol):
    """Sends past the transport, straight from files. Raises BlockingIOError when it would wait."""

    def send(self, data: bytes) -> int:
        """Send some bytes that more will follow; returns how many."""

    def send_file(self, file: Readable, position: int, count: int) -> int:
        """Send some of a file; returns how many bytes, 0 at its end."""

    def when_writable(self, callback: Callable[[], object]) -> None:
        """Call back once, when more can be sent."""

    def close(self) -> None:
        """Stop calling back."""


class SocketSender:
    """Sends on the socket of a transport."""

    def __init__(self, number: int) -> None:
        """`number` is the socket's descriptor."""
        self._number = number
        self._twin: socket.socket | None = None
        """The same socket under a second descriptor, from the first region on."""

    def send(self, data: bytes) -> int:
        """Send some bytes that more will follow; returns how many."""
        return self._second().send(data, socket.MSG_MORE)

    def send_file(self, file: Readable, position: int, count: int) -> int:
        """Send some of a file; returns how many bytes, 0 at its end."""
        return os.sendfile(self._number, file.fileno(), position, count)

    def when_writable(self, callback: Callable[[], object]) -> None:
        """Call back once, when more can be sent."""
        # By number: a selector makes a message for each unknown socket object.
        number = self._second().fileno()
        asyncio.get_running_loop().add_writer(number, _call_once, number, callback)

    def close(self) -> None:
        """Stop calling back."""
        if self._twin is not None:
            asyncio.get_running_loop().remove_writer(self._twin.fileno())
            self._twin.close()
            self._twin = None

    def _second(self) -> socket.socket:
        if self._twin is None:
            self._twin = socket.socket(fileno=os.dup(self._number))
        return self._twin


def _call_once(number: int, callback: Callable[[], object]) -> None:
    asyncio.get_running_loop().remove_writer(number)
    callback()


def region_sender(transport: asyncio.BaseTransport) -> RegionSender | None:
    """The sender of file regions: the transport's own, or its socket; None within TLS."""
    own: Any = transport.get_extra_info("region_sender")
    if own is not None:
        return cast("RegionSender", own)
    if transport.get_extra_info("ssl_object") is not None:
        return None
    return SocketSender(transport.get_extra_info("socket").fileno())


class SendQueue:
    """The unsent rest of one connection's responses."""

    __slots__ = (
        *("_has_large_region", "_most_bytes", "_on_drained", "_parts", "_sender", "_transport"),
        *("has_moved", "is_paused", "size"),
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        sender: RegionSender | None,
        on_drained: Callable[[], None],
    ) -> None:
        """`sender` is None within TLS."""
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._sender = sender
        self._on_drained: Callable[[], None] | None = on_drained
        self._parts: deque[bytes | bytearray | memoryview | _Rest] = deque()
        self._has_large_region = False
        """True if a large region was added since the queue was last empty."""
        self._most_bytes = 0
        """Bytes added since then."""
        self.size = 0
        """Bytes added since the last `flush`."""
        self.is_paused = False
        """True if the socket buffer is full, as far as known."""
        self.has_moved = False
        """Set when a full socket accepts more; cleared by `Connection.look_after`."""

    @property
    def is_empty(self) -> bool:
        """True if all bytes were handed to the kernel: if not, the client reads too slowly."""
        return not self._parts and not self.is_paused

    def add(self, parts: list[Part]) -> None:
        """Queue one whole response, size prefix included; `flush` sends it.

        Answers to requests that arrived together leave together: a system call costs more than a
        response of ordinary size.
        """
        size = 0
        queue = self._parts.append
        for part in parts:
            length = len(part)
            if not length:  # as what follows the last records of a fetch
                continue
            size += length
            if isinstance(part, _BYTES):
                queue(part)
                continue
            queue(_Rest(part, length))  # type: ignore[arg-type]  # `cast` costs a call
            if length > INLINE_REGION_BYTES:
                self._has_large_region = True
        self.size += size
        self._most_bytes += size

    def flush(self) -> None:
        """Send the queued bytes, as far as the socket accepts them."""
        self.size = 0
        if self._parts and not self.is_paused:
            try:
                self._pump()
            except _PEER_IS_GONE:
                self._give_up()
            except OSError as error:
                logger.warning("connection aborted: a response could not be sent: %s", error)
                self._give_up()
            except Exception:
                logger.exception("connection aborted: a response could not be sent")
                self._give_up()

    def release(self) -> None:
        """Drop the queue: the connection is closed."""
        self.is_paused = True
        self._on_drained = None
        self._parts.clear()
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def pause(self) -> None:
        """Stop sending: the transport buffers."""
        self.is_paused = True

    def resume(self) -> None:
        """The socket accepts more: go on."""
        if self._on_drained is None:
            return
        self.has_moved = True
        self.is_paused = False
        self.flush()
        if self.is_empty:
            self._on_drained()

    def _give_up(self) -> None:
        """Drop the queue and abort the connection."""
        self._parts.clear()
        self.is_paused = True
        self._transport.abort()

    def _pump(self) -> None:
        """Send until the queue is empty or the socket is full."""
        parts = self._parts
        if not self._has_large_region and self._most_bytes <= RUN_BYTES:  # as nearly always
            data: list[bytes | bytearray | memoryview] = [
                part.read(part.length) if isinstance(part, _Rest) else part for part in parts
            ]
            parts.clear()
            self._most_bytes = 0
            self._transport.write(data[0] if len(data) == 1 else b"".join(data))
            return
        self._pump_in_runs(parts)
        if not parts:
            self._has_large_region = False
            self._most_bytes = 0

    def _pump_in_runs(self, parts: deque[bytes | bytearray | memoryview | _Rest]) -> None:
        while parts and not self.is_paused:
            data = self._next_run()
            if parts and self._sender is not None and isinstance(parts[0], _Rest):
                if data and not self._send_before_region(self._sender, data):
                    return
                self._send_region(self._sender, parts[0])
            elif data:
                self._transport.write(data)
            else:
                self._send_copy(cast("_Rest", parts[0]))

    def _next_run(self) -> bytes | bytearray | memoryview:
        """Take the parts for one write: bytes and small regions, up to a large one.

        None are empty, so that this is only if a large region comes first.
        """
        parts = self._parts
        run: list[bytes | bytearray | memoryview] = []
        size = 0
        while parts and size < RUN_BYTES:
            head = parts[0]
            if isinstance(head, _Rest):
                if head.length > INLINE_REGION_BYTES:
                    break
                head = head.read(head.length)
            parts.popleft()
            run.append(head)
            size += len(head)
        return run[0] if len(run) == 1 else b"".join(run)

    def _send_before_region(
        self, sender: RegionSender, data: bytes | bytearray | memoryview
    ) -> bool:
        """Send bytes so that they leave with the region behind them."""
        data = bytes(data)
        try:
            sent = sender.send(data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            return True
        self._parts.appendleft(data[sent:])
        self._wait_for_room(sender)
        return False

    def _send_region(self, sender: RegionSender, rest: _Rest) -> None:
        """Send some of the region at the head."""
        try:
            sent = sender.send_file(rest.file, rest.position, rest.length)
        except BlockingIOError:
            self._wait_for_room(sender)
            return
        if sent == rest.length:  # as mostly
            self._parts.popleft()
        else:
            self._skip(rest, sent)

    def _send_copy(self, rest: _Rest) -> None:
        chunk = rest.read(min(rest.length, RUN_BYTES))
        self._transport.write(chunk)
        self._skip(rest, len(chunk))

    def _skip(self, rest: _Rest, count: int) -> None:
        if not count:
            raise _short_file()
        rest.position += count
        rest.length -= count
        if not rest.length:
            self._parts.popleft()

    def _wait_for_room(self, sender: RegionSender) -> None:
        """Go on once the full socket accepts more."""
        self.is_paused = True
        sender.when_writable(self.resume)


def _short_file() -> OSError:
    return OSError("the log file is shorter than the region that was to be sent")


class _Rest:
    """Rest of a region. Holds its file, so that the descriptor outlives deletion."""

    __slots__ = ("file", "length", "position")

    def __init__(self, region: Region, length: int) -> None:
        """`length` is that of the region, which its caller knows."""
        self.file = region.file
        self.position = region.position
        self.length = length

    def read(self, count: int) -> bytes:
        """The next bytes of it. Raises OSError when the file has fewer."""
        data = self.file.read_at(self.position, count)
        if len(data) < count:
            raise _short_file()
        return data
