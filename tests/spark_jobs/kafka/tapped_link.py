"""A link in front of a broker that notes the api key and client id of each request."""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING

from tests.support.brokers.cut_link import CutLink, Direction

if TYPE_CHECKING:
    import socket

PRODUCE, FETCH, LIST_OFFSETS, METADATA, CREATE_TOPICS = 0, 1, 2, 3, 19
HEADER = struct.Struct(">ihhih")
"""Length, api key, version, correlation id, length of the client id."""


class TappedLink(CutLink):
    """Passes everything on."""

    def __init__(self, target: int) -> None:
        self.clients: dict[int, set[str]] = defaultdict(set)
        """Client ids by api key."""
        super().__init__(target)

    def _carry(self, source: socket.socket, sink: socket.socket, direction: Direction) -> None:
        tapped = _Tapped(sink, self.clients) if direction is Direction.REQUESTS else sink
        super()._carry(source, tapped, direction)  # type: ignore[arg-type]


class _Tapped:
    """The broker's end of a connection; reads the header of each frame that is sent into it."""

    def __init__(self, sink: socket.socket, clients: dict[int, set[str]]) -> None:
        self._sink = sink
        self._clients = clients
        self._held = bytearray()

    def sendall(self, piece: bytes) -> None:
        """Note the requests in it that are whole, and send it on."""
        self._held += piece
        while len(self._held) >= HEADER.size:
            length, api_key, _, _, id_length = HEADER.unpack_from(self._held)
            if len(self._held) < 4 + length:
                break
            client_id = self._held[HEADER.size : HEADER.size + max(id_length, 0)]
            self._clients[api_key].add(client_id.decode())
            del self._held[: 4 + length]
        self._sink.sendall(piece)

    def shutdown(self, how: int) -> None:
        """As the socket."""
        self._sink.shutdown(how)

    def close(self) -> None:
        """As the socket."""
        self._sink.close()
