"""A server at one address over HTTP, on threads of its own.

Each thread answers one request after the other, and a client has a few seconds for its own; the
event loop never waits.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from broker.http.protection import UNPROTECTED
from broker.network.listener import ListenError, why_not_bound
from broker.runtime.addresses.listening_socket import listening_socket
from config.listeners.addresses import join_address

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from broker.http.protection import Protection

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 1
"""Before the next request is served, after one that could not be for a reason of our own."""
TIMEOUT_SECONDS = 10
"""Time limit for a client's request; others wait meanwhile."""


class HttpEndpoint:
    """Takes an address, and answers there once `serve` is called."""

    def __init__(
        self, name: str, host: str, port: int, protection: Protection = UNPROTECTED
    ) -> None:
        """Bind the address; raises ListenError.

        `name` is the service in log lines; with dots, it is the prefix of its keys `host` and
        `port`.
        """
        host = host.removeprefix("[").removesuffix("]")
        where = join_address(host or "*", port)
        self._name = name
        self._protection = protection
        server_class = _server_class(name, host, port, protection)
        try:
            self._server = make_server(host, port, self._answer, server_class, _Handler)
        except OSError as error:
            part = "port" if error.errno == errno.EADDRINUSE else "host"
            key = f"{name.replace(' ', '.')}.{part}"
            raise ListenError(why_not_bound(error, host, where), key) from None
        self._application: WSGIApplication | None = None
        self._is_closed = False
        self.port: int = self._server.server_port

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        scheme = "http" if self._protection.context is None else "https"
        return f"{scheme}://{join_address(str(self._server.server_address[0]), self.port)}"

    def serve(self, application: WSGIApplication, threads: int = 1) -> None:
        """Begin to answer, `threads` requests at a time."""
        self._application = application
        for _ in range(threads):
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def close(self) -> None:
        """Stop answering; a request under way ends by itself."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._server.socket.shutdown(socket.SHUT_RDWR)  # wakes the threads
        self._server.server_close()

    def _run(self) -> None:
        while not self._is_closed:
            try:
                self._server.handle_request()
            except Exception:
                if not self._is_closed:  # else the socket was closed in between
                    logger.exception("%s could not be served", self._name)
                    time.sleep(PAUSE_SECONDS)

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        assert self._application is not None
        shown = environ.get("HTTP_AUTHORIZATION", "")
        if not self._protection.admits(shown):
            asked = ("WWW-Authenticate", f'Basic realm="{self._name}"')
            what = "wrong user or password" if shown else "user and password are missing"
            text = f"{what}: {self._protection.user_key} alone may\n"
            return say("401 Unauthorized", text, start_response, asked)
        return self._application(environ, start_response)


def say(
    status: str, text: str, start_response: StartResponse, *headers: tuple[str, str]
) -> list[bytes]:
    """Answer with a few words; text repeated from the request need not be UTF-8."""
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers])
    return [text.encode(errors="backslashreplace")]


class _Handler(WSGIRequestHandler):
    def setup(self) -> None:
        """Begin a request: what reads it knows when it has to be there."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_RequestReader(self.connection))

    def log_message(self, *_: object) -> None:
        """Say nothing: a line for each request would bury what matters."""


class _RequestReader(io.RawIOBase):
    """Reads one request from a socket, which raises TimeoutError unless all comes in time."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._ends = time.monotonic() + TIMEOUT_SECONDS

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  (what the base class takes)
        """Wait for some bytes. A timeout of the socket alone would start over with each."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request takes too long")
        self._connection.settimeout(left)
        count = self._connection.recv_into(buffer)
        self._connection.settimeout(TIMEOUT_SECONDS)  # for the answer
        return count


def _server_class(name: str, host: str, port: int, protection: Protection) -> type[WSGIServer]:
    class Server(WSGIServer):
        def get_request(self) -> tuple[socket.socket, Any]:
            """Accept a connection; its handshake is part of its first read, with that limit."""
            accepted, address = super().get_request()
            return protection.secured(accepted), address

        def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
            """A client that has left, or speaks no TLS, does not deserve a traceback."""
            error = sys.exception()
            if isinstance(error, OSError):
                logger.info("%s: %s: connection closed: %s", name, client_address, error)
            else:
                logger.error("%s could not be served", name, exc_info=error)

        def server_bind(self) -> None:
            """Bind as listeners do; the base class looks up this machine's name."""
            self.socket.close()
            self.socket = listening_socket(host, port)
            self.server_address = self.socket.getsockname()
            self.server_name, self.server_port = host, self.server_address[1]
            self.setup_environ()

    return Server
