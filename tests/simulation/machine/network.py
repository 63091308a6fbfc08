"""A network in memory: latency, links that are cut one way or both, connections that are reset.

What is sent over a cut link waits, as TCP would send it again, until the link heals or the
connection is given up. Pieces arrive in order, in sizes of the network's choosing; a loop may hear
of what has arrived a little late, as one does that is busy.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
from asyncio.selector_events import _SelectorSocketTransport  # type: ignore[attr-defined]
from collections import deque
from typing import TYPE_CHECKING, Any

from tests.simulation.machine.hosts import HOST, Host
from tests.simulation.machine.sockets import End, SimulatedSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from tests.simulation.machine.virtual_loop import VirtualLoop

GIVE_UP_SECONDS = 8.0
"""Longest cut that a connection survives."""
READ_BYTES = 8192
"""Longest read of a client."""
BUFFER_BYTES = 16_384, 65_536, 1 << 20
"""Buffer sizes of a connection whose other side does not read."""
LAGS_SECONDS = 0.0, 0.002, 0.01
"""Longest delays between an arrival in a kernel and its loop's notice of it."""


class ListeningSocket:
    """Stand-in that gives a server's port."""

    def __init__(self, port: int) -> None:
        self._port = port

    def setsockopt(self, *_: Any) -> None:
        """No options."""

    def getsockname(self) -> tuple[str, int]:
        return "", self._port


class SimulatedServer:
    """A listening socket."""

    def __init__(self, host: Host, factory: Callable[[], Any], port: int) -> None:
        self.host = host
        self.factory = factory
        self.port = port
        self.is_serving = False
        self.sockets = [ListeningSocket(port)]
        self.context = contextvars.copy_context()

    async def start_serving(self) -> None:
        self.is_serving = True

    def close(self) -> None:
        self.is_serving = False
        self.host.servers.pop(self.port, None)

    async def wait_closed(self) -> None:
        """Nothing lingers."""


class _Link:
    """Bytes in flight from one end to its other."""

    __slots__ = ("is_broken", "next_arrival", "pieces")

    def __init__(self) -> None:
        self.is_broken = False
        """Something was lost: nothing after it may arrive, or the stream had a gap."""
        self.next_arrival = 0.0
        self.pieces: deque[tuple[float, float, bytes | None]] = deque()
        """Arrival time, sending time and bytes of each piece."""


class Network:
    """Reachability of hosts, and latency."""

    def __init__(self, loop: VirtualLoop, random: Random, latency_ms: tuple[float, float]) -> None:
        self.loop = loop
        self.random = random
        self.latency_ms = latency_ms
        self.buffer_bytes = random.choice(BUFFER_BYTES)
        self.lag_seconds = random.choice(LAGS_SECONDS)
        self.hosts: dict[str, Host] = {}
        self._links: dict[End, _Link] = {}
        self._cuts: dict[tuple[str, str], float] = {}
        """End of each cut; directed: (from, to)."""
        self.last_cut = 0.0
        """End of the last cut, perhaps in the future."""
        self._ports = iter(range(10_000, 1_000_000))

    def delay(self) -> float:
        """Seconds that a piece travels."""
        return self.random.uniform(*self.latency_ms) / 1000

    def lag(self) -> float:
        """Seconds until a loop hears of what its kernel knows; none, as a rule."""
        if not self.lag_seconds or self.random.random() < 0.5:
            return 0.0
        return self.random.uniform(0.0, self.lag_seconds)

    def carrying_seconds(self, count: int) -> float:
        """About how long one connection, of which nothing is lost, takes to carry so many bytes.

        Its buffer is filled, carried, read in small pieces and acknowledged, and so on; whoever is
        to read or to fill it hears of that with the mean lag.
        """
        lag = self.lag_seconds / 4  # none in half of all cases, see `lag`
        there_and_back = 2 * (self.latency_ms[1] / 1000 + lag)
        return count * (there_and_back / self.buffer_bytes + lag / READ_BYTES)

    def cut_short(self, count: int) -> int:
        """Return how many of `count` bytes one system call takes."""
        if count > 1 and self.random.random() < 0.1:
            return self.random.randint(1, count)
        return count

    def cut(self, links: Iterable[tuple[str, str]], seconds: float) -> None:
        """Let nothing through from the first of each pair to the second."""
        for link in links:
            self._cuts[link] = max(self._cuts.get(link, 0.0), self.loop.now + seconds)
            self.last_cut = max(self.last_cut, self._cuts[link])

    def is_cut(self, source: str, target: str) -> bool:
        """Return whether nothing gets through."""
        return self._cuts.get((source, target), 0.0) > self.loop.now

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is cut."""
        return all(end <= self.loop.now for end in self._cuts.values())

    def heal(self) -> None:
        """End all cuts."""
        if not self.is_whole:
            self.last_cut = self.loop.now
        self._cuts.clear()

    # Connections

    def listen(self, factory: Callable[[], Any], name: str | None, port: int) -> SimulatedServer:
        host = HOST.get()
        assert host is not None, name
        server = SimulatedServer(host, factory, port or next(self._ports))
        host.servers[server.port] = server
        return server

    async def connect(self, factory: Callable[[], Any], name: str, port: int) -> Any:
        """Connect from the running host."""
        source = HOST.get()
        assert source is not None
        await asyncio.sleep(self.delay())
        waited = 0.0
        while self.is_cut(source.name, name) or self.is_cut(name, source.name):
            await asyncio.sleep(0.2)
            waited += 0.2
            if waited > GIVE_UP_SECONDS:
                raise TimeoutError(f"{name} does not answer")
        target = self.hosts.get(name)
        server = None if target is None or target.is_dead else target.servers.get(port)
        if target is None or server is None or not server.is_serving:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{name}:{port} refuses")
        ours = End(self, source, next(self._ports))
        theirs = End(self, target, port)
        ours.peer, theirs.peer = theirs, ours
        self.loop.call_soon(self._accept, server, theirs, context=server.context.copy())
        connected = self.loop.create_future()
        protocol = factory()
        transport = _SelectorSocketTransport(
            self.loop, SimulatedSocket(ours), protocol, waiter=connected
        )
        await connected
        return transport, protocol

    def _accept(self, server: SimulatedServer, end: End) -> None:
        """On the server's host, once it runs."""
        if server.is_serving:
            _SelectorSocketTransport(self.loop, SimulatedSocket(end), server.factory())
        else:
            self.reset(end.peer)

    # What is under way

    def send(self, sender: End, data: bytes | None) -> None:
        """Carry a piece to the other end, after all that was sent before it; None is the end.

        Once something of a connection is lost, all that comes after it is, too: TCP has no gaps.
        """
        link = self._links.setdefault(sender, _Link())
        if link.is_broken:
            return
        pieces: list[bytes | None] = [data]
        if data is not None and len(data) > 1 and self.random.random() < 0.1:
            at = self.random.randrange(1, len(data))
            pieces = [data[:at], data[at:]]
        for piece in pieces:
            arrival = max(link.next_arrival, self.loop.now + self.delay())
            link.next_arrival = arrival
            link.pieces.append((arrival, self.loop.now, piece))
            if len(link.pieces) == 1:
                self._at(arrival, self._carry, sender)

    def acknowledge(self, sender: End, count: int) -> None:
        """So many bytes of what `sender` sent were read; it learns that a little later."""
        was_full = sender.room <= 0
        sender.unread -= count
        if was_full:
            self._at(self.loop.now + self.delay(), self.loop.descriptor_changed, sender)

    def forget(self, sender: End) -> _Link:
        """Drop the undelivered bytes that it has sent."""
        link = self._links.setdefault(sender, _Link())
        link.pieces.clear()
        return link

    def break_stream(self, sender: End) -> None:
        """The same, and so is all that it sends until it hears of the reset."""
        self.forget(sender).is_broken = True

    def reset(self, end: End) -> None:
        """Its other side is no more, and says so; what that side had under way is lost."""
        self.break_stream(end.peer)
        error = ConnectionResetError(errno.ECONNRESET, "connection reset by peer")
        self._at(self.loop.now + self.delay(), end.fail, error)

    def refuse(self, closed: End) -> None:
        """Data has come to an end that is closed: the sender hears of it."""
        sender = closed.peer
        error: OSError = ConnectionResetError(errno.ECONNRESET, "connection reset by peer")
        if sender.has_ended:
            error = BrokenPipeError(errno.EPIPE, "broken pipe")
        self._at(self.loop.now + self.delay(), sender.fail, error)

    def break_off(self, end: End) -> None:
        """Somebody on the way ends a connection; both sides hear of it, each at its time."""
        self.reset(end)
        self.reset(end.peer)

    def _at(self, when: float, call: Callable[..., object], *args: object) -> None:
        contextvars.Context().run(self.loop.call_at, when, call, *args)

    def _carry(self, sender: End) -> None:
        """Deliver what is due, in order; a cut link is tried again."""
        receiver = sender.peer
        queue = self._links[sender].pieces
        while queue:
            arrival, sent, piece = queue[0]
            if arrival > self.loop.now:
                self._at(arrival, self._carry, sender)
                return
            if self.is_cut(sender.host.name, receiver.host.name):
                if self.loop.now - sent > GIVE_UP_SECONDS:
                    self.break_off(sender)
                else:
                    self._at(self.loop.now + 0.05, self._carry, sender)
                return
            queue.popleft()
            receiver.arrive(piece)

    def kill(self, host: Host, *, power: bool) -> None:
        """A host is no more; who is connected to it learns that, if it can be reached.

        A process that is killed leaves its kernel to send what it has taken; a machine does not.
        """
        host.is_dead = True
        for end in list(host.ends):
            if power:
                self.forget(end)
            end.close()
        host.ends.clear()
        host.servers.clear()
