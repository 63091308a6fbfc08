"""Sockets as a kernel keeps them: buffers that fill, writes cut short, resets that come unasked.

asyncio's own transports stand on these, and `send_queue` sends regions of files through them:
`SYSTEM` stands in for the few system calls that it makes itself. A reset shows in the next system
call, whichever that is, before the loop hears of it.
"""

from __future__ import annotations

import errno
import itertools
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.wire import Buffer
    from tests.simulation.machine.hosts import Host
    from tests.simulation.machine.network import Network

FIRST_DESCRIPTOR = 1 << 20
"""Far above those of this process: what slips through to the real system calls fails there."""

_numbers = itertools.count(FIRST_DESCRIPTOR)


class Readable(Protocol):
    """A file that regions are sent from."""

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`."""


SOCKETS: dict[int, SimulatedSocket] = {}
"""The open ones, by descriptor."""
FILES: WeakValueDictionary[int, Readable] = WeakValueDictionary()
"""By descriptor, which is good while the file object lives, as a real one is."""


def file_descriptor(file: Readable) -> int:
    """Give a file a descriptor."""
    number = next(_numbers)
    FILES[number] = file
    return number


class End:
    """One end of a connection; it is closed when the last descriptor that refers to it is."""

    broken_sends: ClassVar[int] = 0
    """Count of failed sends, on all connections."""

    def __init__(self, network: Network, host: Host, port: int) -> None:
        self.network = network
        self.host = host
        self.port = port
        self.peer: End
        self.descriptors: dict[int, SimulatedSocket] = {}
        self.inbox = bytearray()
        self.has_ended = False
        """The other side has closed: nothing comes after the content of the inbox."""
        self.error: OSError | None = None
        self.is_shut = False
        """Its error was reported: nothing can be sent any more."""
        self.is_closed = False
        self.unread = 0
        """Bytes that were sent, and not yet read by the other side."""
        self.on_sent: Callable[[int], None] | None = None
        """Hears how many bytes each send has taken."""
        host.ends[self] = None

    @property
    def room(self) -> int:
        """Return the number of bytes that a send takes now."""
        return self.network.buffer_bytes - self.unread

    @property
    def is_readable(self) -> bool:
        """Return whether the loop's selector would report it as readable."""
        return bool(self.inbox) or self.has_ended or self.is_shut or self.error is not None

    @property
    def is_writable(self) -> bool:
        """Return whether the loop's selector would report it as writable."""
        return self.room > 0 or self.is_shut or self.error is not None

    def accept_for_sending(self, wanted: int) -> int:
        """Return how many bytes of `wanted` a send takes; raise as a system call would."""
        if self.error is not None or self.is_shut:
            End.broken_sends += 1
            error, self.error = self.error, None
            self.is_shut = True
            raise error or BrokenPipeError(errno.EPIPE, "broken pipe")
        room = min(self.room, wanted)
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "the buffer is full")
        return self.network.cut_short(room)

    def send(self, data: Buffer) -> int:
        """Take some of `data`, at least a byte."""
        count = self.accept_for_sending(len(data))
        self.unread += count
        self.network.send(self, bytes(memoryview(data)[:count]))
        if self.on_sent is not None:
            self.on_sent(count)
        return count

    def receive(self, buffer: memoryview) -> int:
        """Fill `buffer` as far as there is something; 0 at the end."""
        count = min(len(buffer), len(self.inbox))
        if count:
            buffer[:count] = self.inbox[:count]
            del self.inbox[:count]
            self.network.acknowledge(self.peer, count)
            return count
        if self.error is not None:
            error, self.error = self.error, None
            self.is_shut = True
            raise error
        if self.has_ended or self.is_shut:
            return 0
        raise BlockingIOError(errno.EAGAIN, "nothing is there")

    def arrive(self, data: bytes | None) -> None:
        """A piece is here; None is the end."""
        if self.is_closed:
            if data is not None:
                self.network.refuse(self)
        elif data is None:
            self.has_ended = True
            self.network.loop.descriptor_changed(self)
        else:
            self.inbox += data
            self.network.loop.descriptor_changed(self)

    def fail(self, error: OSError) -> None:
        """A reset is here: what was under way is lost."""
        if self.is_closed or self.is_shut or self.error is not None:
            return
        self.error = error
        self.network.break_stream(self)
        self.network.loop.descriptor_changed(self)

    def reset(self) -> None:
        """Break it off: what is under way is lost, and the other side gets an error."""
        self.is_shut = True
        self.network.reset(self.peer)

    def close(self) -> None:
        """Nobody has a descriptor any more. What is unread makes a reset of it, as on Linux."""
        if self.is_closed:
            return
        self.is_closed = True
        self.host.ends.pop(self, None)
        if self.inbox:
            self.network.reset(self.peer)
        elif self.error is None and not self.is_shut:
            self.network.send(self, None)


class SimulatedSocket:
    """A descriptor of one end, with what asyncio's transports and the broker ask of a socket."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, end: End) -> None:
        self.end = end
        self._number = next(_numbers)
        SOCKETS[self._number] = self
        end.descriptors[self._number] = self

    def fileno(self) -> int:
        return self._number

    def dup(self) -> SimulatedSocket:
        return SimulatedSocket(self.end)

    def setsockopt(self, *_: Any) -> None:
        """No options."""

    def setblocking(self, _: bool) -> None:
        """It never blocks."""

    def gettimeout(self) -> float:
        return 0.0

    def getsockname(self) -> tuple[str, int]:
        return self.end.host.name, self.end.port

    def getpeername(self) -> tuple[str, int]:
        return self.end.peer.host.name, self.end.peer.port

    def send(self, data: Buffer, _: int = 0) -> int:
        self._check_open()
        return self.end.send(data)

    def sendmsg(self, buffers: Any) -> int:
        return self.send(b"".join(buffers))

    def recv_into(self, buffer: memoryview) -> int:
        self._check_open()
        return self.end.receive(buffer)

    def shutdown(self, _: int) -> None:
        """Nobody closes one direction only."""

    def close(self) -> None:
        if self._number < 0:
            return
        SOCKETS.pop(self._number, None)
        self.end.descriptors.pop(self._number, None)
        self._number = -1
        if not self.end.descriptors and not self.end.host.is_dead:
            self.end.close()

    def is_readable(self) -> bool:
        return self.end.is_readable

    def is_writable(self) -> bool:
        return self.end.is_writable

    def _check_open(self) -> None:
        if self._number < 0:
            raise OSError(errno.EBADF, "the socket is closed")


def _open(number: int) -> SimulatedSocket:
    found = SOCKETS.get(number)
    if found is None:
        raise OSError(errno.EBADF, "no such descriptor")
    return found


class Sendfile:
    """`os.sendfile`, which reads the file at the moment of sending; and what it was used for."""

    def __init__(self) -> None:
        self.calls = 0
        self.largest = 0
        """Most bytes that were asked for at once: the largest region so far."""
        self.cut_short = 0
        """Count of regions that were not sent at once."""
        self.broken = 0
        """Count of connections lost in the middle of a region."""

    def __call__(self, out_fd: int, in_fd: int, offset: int, count: int) -> int:
        self.calls += 1
        self.largest = max(self.largest, count)
        end = _open(out_fd).end
        try:
            taken = end.accept_for_sending(count)
        except BlockingIOError:
            self.cut_short += 1
            raise
        except OSError:
            self.broken += 1
            raise
        file = FILES.get(in_fd)
        if file is None:
            raise OSError(errno.EBADF, "no such file is open")
        data = file.read_at(offset, taken)
        self.cut_short += len(data) < count
        if data:
            end.unread += len(data)
            end.network.send(end, data)
        return len(data)


SENDFILE = Sendfile()


def _socket(fileno: int) -> SimulatedSocket:
    """`socket.socket(fileno=…)`: takes the descriptor over."""
    return _open(fileno)


SYSTEM = SimpleNamespace(dup=lambda number: _open(number).dup().fileno(), sendfile=SENDFILE)
"""Of the module `os`, what `broker.network.send_queue` uses."""
SOCKET_MODULE = SimpleNamespace(socket=_socket, MSG_MORE=socket.MSG_MORE)
"""Of the module `socket`, what `broker.network.send_queue` uses."""


def stand_in(module: Any) -> Callable[[], None]:
    """Have a module of the broker make its system calls here; returns what undoes it."""
    before = module.os, module.socket
    module.os, module.socket = SYSTEM, SOCKET_MODULE

    def undo() -> None:
        module.os, module.socket = before

    return undo
