"""A network in memory: latency, links that are cut one way or both, connections that are reset.

What is sent over a cut link waits, as TCP would send it again, until the link heals or the
connection is given up. Pieces arrive in order, in sizes of the network's choosing.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from typing import TYPE_CHECKING, Any

from tests.simulation.hosts import HOST, Host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from tests.simulation.virtual_loop import VirtualLoop

GIVE_UP_SECONDS = 8.0
"""How long a connection survives a cut."""


class _Socket:
    """What asks a transport for its socket gets this."""

    def __init__(self, port: int) -> None:
        self._port = port

    def setsockopt(self, *_: Any) -> None:
        """No options."""

    def getsockname(self) -> tuple[str, int]:
        return "", self._port

    def fileno(self) -> int:
        return -1


class SimulatedServer:
    """A listening socket."""

    def __init__(self, host: Host, factory: Callable[[], Any], port: int) -> None:
        self.host = host
        self.factory = factory
        self.port = port
        self.is_serving = False
        self.sockets = [_Socket(port)]
        self.context = contextvars.copy_context()

    async def start_serving(self) -> None:
        self.is_serving = True

    def close(self) -> None:
        self.is_serving = False
        self.host.servers.pop(self.port, None)

    async def wait_closed(self) -> None:
        """Nothing lingers."""


class SimulatedTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: Network, host: Host, context: contextvars.Context) -> None:
        super().__init__()
        self.host = host
        self.peer: SimulatedTransport
        self.protocol: Any = None
        self.context = context
        self._network = network
        self._inbox: list[bytes] = []
        self._is_reading = True
        self._closing = False
        self._is_gone = False
        self.next_arrival = 0.0
        self.under_way: deque[tuple[float, float, bytes | None]] = deque()
        """When each piece arrives, when it was sent, and the piece."""

    # asyncio.Transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        values = {
            "socket": _Socket(0),
            "peername": (self.peer.host.name, 1),
            "ssl_object": self,  # so that nobody looks for a descriptor to send files to
        }
        return values.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is held back here."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        if not self._closing and not self._is_gone:
            self._network.send(self, bytes(data))

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(bytes(part) for part in parts))

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._network.send(self, None)
            self._network.loop.call_soon(self.lose, None, context=self.context)

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        if self._inbox:
            self._network.loop.call_soon(self._drain, context=self.context)

    # The network's side

    def arrive(self, data: bytes | None) -> None:
        """A piece is here; None is the end."""
        if self._is_gone:
            return
        if data is None:
            self.lose(ConnectionResetError("closed by the other side"))
            return
        self._inbox.append(data)
        self._drain()

    def _drain(self) -> None:
        while self._inbox and self._is_reading and not self._is_gone:
            data = memoryview(self._inbox.pop(0))
            while data:
                buffer = self.protocol.get_buffer(len(data))
                count = min(len(buffer), len(data))
                buffer[:count] = data[:count]
                data = data[count:]
                self.protocol.buffer_updated(count)

    def lose(self, error: Exception | None) -> None:
        """The connection is over on this side."""
        if self._is_gone:
            return
        self._is_gone = True
        self._closing = True
        self.host.transports.pop(self, None)
        if self.protocol is not None:
            self.protocol.connection_lost(error)


class Network:
    """Who can reach whom, and how fast."""

    def __init__(self, loop: VirtualLoop, random: Random, latency_ms: tuple[float, float]) -> None:
        self.loop = loop
        self.random = random
        self.latency_ms = latency_ms
        self.hosts: dict[str, Host] = {}
        self._cuts: dict[tuple[str, str], float] = {}
        """When each is over; directed: (from, to)."""
        self._ports = iter(range(10_000, 100_000))

    def delay(self) -> float:
        """Seconds that a piece travels."""
        return self.random.uniform(*self.latency_ms) / 1000

    def cut(self, links: Iterable[tuple[str, str]], seconds: float) -> None:
        """Let nothing through from the first of each pair to the second."""
        for link in links:
            self._cuts[link] = max(self._cuts.get(link, 0.0), self.loop.now + seconds)

    def is_cut(self, source: str, target: str) -> bool:
        """Whether nothing gets through."""
        return self._cuts.get((source, target), 0.0) > self.loop.now

    @property
    def is_whole(self) -> bool:
        """Whether nothing is cut."""
        return all(end <= self.loop.now for end in self._cuts.values())

    def heal(self) -> None:
        """End all cuts."""
        self._cuts.clear()

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
            raise ConnectionRefusedError(111, f"{name}:{port} refuses")
        ours = SimulatedTransport(self, source, contextvars.copy_context())
        theirs = SimulatedTransport(self, target, server.context)
        ours.peer, theirs.peer = theirs, ours
        source.transports[ours] = None
        target.transports[theirs] = None
        ours.protocol = factory()
        theirs.protocol = server.context.copy().run(server.factory)
        self.loop.call_soon(theirs.protocol.connection_made, theirs, context=server.context)
        ours.protocol.connection_made(ours)
        return ours, ours.protocol

    def send(self, sender: SimulatedTransport, data: bytes | None) -> None:
        """Carry a piece to the other end, after all that was sent before it."""
        pieces: list[bytes | None] = [data]
        if data is not None and len(data) > 1 and self.random.random() < 0.1:
            at = self.random.randrange(1, len(data))
            pieces = [data[:at], data[at:]]
        for piece in pieces:
            arrival = max(sender.next_arrival, self.loop.now + self.delay())
            sender.next_arrival = arrival
            sender.under_way.append((arrival, self.loop.now, piece))
            if len(sender.under_way) == 1:
                self._at(arrival, sender)

    def _at(self, when: float, sender: SimulatedTransport) -> None:
        contextvars.Context().run(self.loop.call_at, when, self._carry, sender)

    def _carry(self, sender: SimulatedTransport) -> None:
        """Deliver what is due, in order; a cut link is tried again."""
        receiver = sender.peer
        queue = sender.under_way
        while queue:
            arrival, sent, piece = queue[0]
            if arrival > self.loop.now:
                self._at(arrival, sender)
                return
            if self.is_cut(sender.host.name, receiver.host.name):
                if self.loop.now - sent > GIVE_UP_SECONDS:
                    self._reset(sender)
                else:
                    self._at(self.loop.now + 0.05, sender)
                return
            queue.popleft()
            if piece is None or not sender.host.is_dead:
                self.loop.call_soon(receiver.arrive, piece, context=receiver.context)

    def _reset(self, transport: SimulatedTransport) -> None:
        for end in (transport, transport.peer):
            end.under_way.clear()
            error = ConnectionResetError("given up")
            self.loop.call_soon(end.lose, error, context=end.context)

    def kill(self, host: Host) -> None:
        """A host is no more; who is connected to it learns that, if it can be reached."""
        host.is_dead = True
        for transport in list(host.transports):
            self.send(transport, None)
        host.transports.clear()
        host.servers.clear()
