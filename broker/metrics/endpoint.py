"""Where metrics can be had: `/metrics`, and of each partition `/metrics/partitions`.

A thread of its own answers, one request after the other. By default it listens on this machine
alone, and nothing else protects it; TLS and a password can (`endpoint_protection`).
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from broker.metrics.endpoint_protection import UNPROTECTED
from broker.network.listener import ListenError, why_not_bound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from broker.metrics.endpoint_protection import Protection

logger = logging.getLogger(__name__)

PATH = "/metrics"
PARTITIONS_PATH = "/metrics/partitions"
PAUSE_SECONDS = 1
"""Before the next request is served, after one that could not be for a reason of our own."""
TIMEOUT_SECONDS = 10
"""What a client may take over a request; it keeps others from being served."""


class MetricsEndpoint:
    """Serves pages by path."""

    def __init__(self, host: str, port: int, protection: Protection = UNPROTECTED) -> None:
        """Take the address; raises ListenError. Nothing is served until `serve`."""
        self._pages: Mapping[str, Callable[[], bytes]] = {}
        where = f"{host or '*'}:{port}"
        self._protection = protection
        server_class = _server_class(host, protection)
        try:
            self._server = make_server(host, port, self._answer, server_class, _Handler)
        except OSError as error:
            raise ListenError(f"metrics: {why_not_bound(error, host, where)}") from None
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._is_closed = False
        self.port: int = self._server.server_port

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        host = str(self._server.server_address[0])
        scheme = "http" if self._protection.context is None else "https"
        return (
            f"{scheme}://[{host}]:{self.port}" if ":" in host else f"{scheme}://{host}:{self.port}"
        )

    def serve(self, pages: Mapping[str, Callable[[], bytes]]) -> None:
        """Begin to answer with pages by path; they are made on the endpoint's thread."""
        self._pages = pages
        self._thread.start()

    def close(self) -> None:
        """Answer no more; a request under way is left to end by itself."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._server.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._server.server_close()

    def _run(self) -> None:
        while not self._is_closed:
            try:
                self._server.handle_request()
            except Exception:
                if not self._is_closed:  # else the socket was closed in between
                    logger.exception("metrics could not be served")
                    time.sleep(PAUSE_SECONDS)

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not self._protection.admits(environ.get("HTTP_AUTHORIZATION", "")):
            asked = ("WWW-Authenticate", 'Basic realm="metrics"')
            return _say("401 Unauthorized", "metrics.user alone may\n", start_response, asked)
        made = self._pages.get(environ["PATH_INFO"])
        if made is None:
            text = "".join(f"{path}\n" for path in self._pages)
            return _say(
                "404 Not Found", f"There is nothing here. There is:\n{text}", start_response
            )
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return _say("405 Method Not Allowed", "GET only\n", start_response)
        try:
            page = made()
        except Exception:
            logger.exception("metrics could not be read")
            return _say("500 Internal Server Error", "see the broker's log\n", start_response)
        start_response("200 OK", [("Content-Type", CONTENT_TYPE_LATEST)])
        return [page]


class _Handler(WSGIRequestHandler):
    timeout = TIMEOUT_SECONDS

    def log_message(self, *_: object) -> None:
        """Say nothing: a line for each scrape would bury what matters."""


def _server_class(host: str, protection: Protection) -> type[WSGIServer]:
    class Server(WSGIServer):
        def get_request(self) -> tuple[socket.socket, Any]:
            """Accept a connection; its handshake is part of its first read, with that limit."""
            accepted, address = super().get_request()
            return protection.secured(accepted), address

        def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
            """A client that has left, or speaks no TLS, is no reason for a traceback."""
            error = sys.exception()
            if isinstance(error, OSError):
                logger.info("metrics: %s: connection closed: %s", client_address, error)
            else:
                logger.error("metrics could not be served", exc_info=error)

        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def server_bind(self) -> None:
            """As the base class, which besides asks a name server who this machine is."""
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()
            self.server_name, self.server_port = host, self.server_address[1]
            self.setup_environ()

    return Server


def _say(
    status: str, text: str, start_response: StartResponse, *headers: tuple[str, str]
) -> list[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers])
    return [text.encode()]
