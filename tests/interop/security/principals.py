"""Clients that log in with SASL/PLAIN and send any request, frame by frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.headers import request_front, response_header_bytes
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from protocol.schema import Request

CLIENT_ID = b"differential"
ANSWER_SECONDS = 30.0


class Principal:
    """A client of one broker; it reconnects when the broker has hung up."""

    def __init__(self, port: int, user: str | None = None) -> None:
        """`user` logs in with their name as the password; without, nobody does."""
        self._port = port
        self._user = user
        self._connection: RawConnection | None = None
        self._sent = 0

    def ask(self, request: Request, version: int) -> Any:
        """The answer. Raises ConnectionClosedError if there is none."""
        if self._connection is None:
            self._connect()
        try:
            return self._ask(request, version)
        except OSError:
            self.close()
            raise

    def versions(self) -> dict[int, range]:
        """Return the versions that the broker serves, by API key."""
        answer = self.ask(ApiVersionsRequest(), 0)
        return {one.api_key: range(one.min_version, one.max_version + 1) for one in answer.api_keys}

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.socket.close()
            self._connection = None

    def _connect(self) -> None:
        self._connection = RawConnection.open(self._port, ANSWER_SECONDS)
        if self._user is None:
            return
        shaken = self._ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert shaken.error_code == 0, shaken
        token = f"\0{self._user}\0{self._user}".encode()
        told = self._ask(SaslAuthenticateRequest(auth_bytes=token), 1)
        assert told.error_code == 0, told

    def _ask(self, request: Request, version: int) -> Any:
        assert self._connection is not None
        self._sent += 1
        body = request.encode(version)
        key = type(request).API_KEY
        front = request_front(self._sent, key, version, CLIENT_ID, len(body))
        self._connection.send(front + body)
        frame = self._connection.receive()
        number = int.from_bytes(frame[:4], "big")
        assert number == self._sent, f"answer {number} to request {self._sent}"
        header = response_header_bytes(key, version)
        return type(request).RESPONSE.decode(version, frame[header:])
