"""A TCP proxy in front of a port, which can be cut in either direction, and healed.

What is sent into a cut direction is held and arrives after healing, late, as TCP would resend it;
connections stay open, and neither side is told anything.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from enum import Flag, auto

PIECE_BYTES = 65536
BACKLOG = 64


class Direction(Flag):
    """Direction in which no bytes pass."""

    REQUESTS = auto()
    """Towards the port."""
    ANSWERS = auto()
    """Bytes from the port."""
    BOTH = REQUESTS | ANSWERS


class CutLink:
    """Listens on `port` from the start; connects to `target` for each connection it accepts."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.port = int(self._listening.getsockname()[1])
        self._passes = {direction: threading.Event() for direction in Direction.BOTH}
        self._sockets: set[socket.socket] = set()
        self._is_closed = False
        self.heal()
        threading.Thread(target=self._accept, name=f"link-{target}", daemon=True).start()

    def cut(self, direction: Direction = Direction.BOTH) -> None:
        """Block a direction until `heal`."""
        for one in direction:
            self._passes[one].clear()

    def heal(self) -> None:
        """Pass everything again, first the held bytes."""
        for event in self._passes.values():
            event.set()

    def close(self) -> None:
        """End all connections, and listen no more."""
        self._is_closed = True
        self.heal()
        # A thread in accept would keep the port; this wakes it.
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in list(self._sockets):
            _hang_up(one)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            ways = (
                (client, server, Direction.REQUESTS),
                (server, client, Direction.ANSWERS),
            )
            self._sockets |= {client, server}
            for way in ways:
                threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, direction: Direction) -> None:
        """Carry bytes until either side ends; its end is held by a cut as well."""
        passes = self._passes[direction]
        try:
            while piece := source.recv(PIECE_BYTES):
                passes.wait()
                sink.sendall(piece)
        except OSError:
            pass
        passes.wait()
        _hang_up(sink)
        _hang_up(source)
        self._sockets -= {source, sink}


def _hang_up(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
