"""Raw Kafka frames over a blocking socket, for what no client library will send."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

API_VERSIONS = 18
METADATA = 3
HEADER_CLIENT_ID = "raw"


class ConnectionClosedError(ConnectionError):
    """The peer closed the connection where an answer was expected."""


@dataclass(slots=True)
class RawConnection:
    """A TCP connection that sends bytes unchanged and reads whole frames."""

    socket: socket.socket

    @classmethod
    def open(cls, port: int, timeout_seconds: float = 60.0) -> RawConnection:
        """Connect to `port` of this machine."""
        return cls(socket.create_connection(("127.0.0.1", port), timeout_seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send `data` whole, with nothing added."""
        self.socket.sendall(data)

    def ask(self, request: bytes) -> bytes:
        """Send one framed request and return the answer without its length."""
        self.send(framed(request))
        return self.receive()

    def receive(self) -> bytes:
        """Return the next frame's content; `ConnectionClosedError` if there is none."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        chunks = bytearray()
        while len(chunks) < count:
            chunk = self.socket.recv(count - len(chunks))
            if not chunk:
                raise ConnectionClosedError(f"closed after {len(chunks)} of {count} bytes")
            chunks += chunk
        return bytes(chunks)


def framed(content: bytes) -> bytes:
    """Put the length before `content`."""
    return struct.pack(">i", len(content)) + content


def request_header(api_key: int, version: int, correlation_id: int = 1) -> bytes:
    """Return request header v1 (v2 adds a byte of tagged fields)."""
    client_id = HEADER_CLIENT_ID.encode()
    fixed = struct.pack(">hhih", api_key, version, correlation_id, len(client_id))
    return fixed + client_id


def api_versions_request(correlation_id: int = 1) -> bytes:
    """Return an ApiVersions v0 request: a header and no body."""
    return request_header(API_VERSIONS, 0, correlation_id)


def serves_api_versions(port: int, timeout_seconds: float = 2.0) -> bool:
    """Say whether the broker on `port` answers ApiVersions without an error."""
    try:
        with RawConnection.open(port, timeout_seconds) as connection:
            answer = connection.ask(api_versions_request(7))
    except OSError:
        return False
    correlation_id, error_code = struct.unpack_from(">ih", answer)
    return bool(correlation_id == 7 and error_code == 0)


def knows_itself(port: int, timeout_seconds: float = 2.0) -> bool:
    """Say whether Metadata of the broker on `port` lists a broker: it can serve topics."""
    no_topics = struct.pack(">i", 0)
    try:
        with RawConnection.open(port, timeout_seconds) as connection:
            answer = connection.ask(request_header(METADATA, 1) + no_topics)
    except OSError:
        return False
    _, brokers = struct.unpack_from(">ii", answer)
    return bool(brokers >= 1)
