"""HTTP endpoint of metrics: `/metrics`, and of each partition `/metrics/partitions`.

Metrics pushed by clients (KIP-714) are at `/metrics/clients`. By default it listens on this machine
alone, without other protection; TLS and a password can be configured (`broker.http.protection`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from broker.http.endpoint import HttpEndpoint, say
from broker.http.protection import UNPROTECTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from broker.http.protection import Protection

logger = logging.getLogger(__name__)

PATH = "/metrics"
PARTITIONS_PATH = "/metrics/partitions"
CLIENTS_PATH = "/metrics/clients"


class MetricsEndpoint:
    """Serves pages by path."""

    def __init__(self, host: str, port: int, protection: Protection = UNPROTECTED) -> None:
        """Take the address; raises ListenError. Nothing is served until `serve`."""
        self._pages: Mapping[str, Callable[[], bytes]] = {}
        self._endpoint = HttpEndpoint("metrics", host, port, protection)
        self.port: int = self._endpoint.port

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return self._endpoint.url

    def serve(self, pages: Mapping[str, Callable[[], bytes]], threads: int = 1) -> None:
        """Begin to answer with pages by path; they are made on the endpoint's threads."""
        self._pages = pages
        self._endpoint.serve(self._answer, threads)

    def close(self) -> None:
        """Stop answering; a request under way ends by itself."""
        self._endpoint.close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        made = self._pages.get(environ["PATH_INFO"])
        if made is None:
            text = "".join(f"{path}\n" for path in self._pages)
            return say("404 Not Found", f"There is nothing here. There is:\n{text}", start_response)
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return say("405 Method Not Allowed", "GET only\n", start_response)
        try:
            page = made()
        except Exception:
            logger.exception("metrics could not be read")
            return say("500 Internal Server Error", "see the broker's log\n", start_response)
        start_response("200 OK", [("Content-Type", CONTENT_TYPE_LATEST)])
        return [page]
