"""A Unix socket at which a broker reports its status: for the supervisor of a node.

A client sends a line, the name of a page, and is sent the page until the end of the connection;
nothing, if there is no such page. The socket is accessible to the user that the broker runs as. A
thread of its own answers, one client after the other.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from broker.network.listener import ListenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

logger = logging.getLogger(__name__)

STATUS, METRICS, PARTITIONS = "status", "metrics", "partitions"
TIMEOUT_SECONDS = 10
"""Time limit for a client's request, and for its reading: others wait meanwhile."""
PAUSE_SECONDS = 1
"""Before the next client is taken, after one that could not be."""
LONGEST_NAME = 64
BACKLOG = 16
_PIECE = 1 << 16


class StatusSocket:
    """Serves pages by name; until `serve` only a status, with `is_serving` false."""

    def __init__(self, path: str) -> None:
        """Take the address; raises ListenError. It may be one that a dead process has left."""
        self._path = path
        self._pages: Mapping[str, Callable[[], bytes]] = {STATUS: _not_serving}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind(self._socket, path)
        except OSError as error:
            self._socket.close()
            why = error.strerror or str(error)
            raise ListenError(f"cannot listen on {path}: {why}", "status.socket") from None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)
        self._thread.start()

    def serve(self, pages: Mapping[str, Callable[[], bytes]]) -> None:
        """Answer with these pages from now on; they are made on the thread of the socket."""
        self._pages = pages

    def close(self) -> None:
        """Stop answering, and remove the address."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._socket.close()
        with contextlib.suppress(OSError):
            Path(self._path).unlink()

    def _run(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._socket.accept()
            except OSError as error:
                if not self._is_closed:  # else it was closed in between
                    logger.warning("status socket %s: %s", self._path, error)
                    time.sleep(PAUSE_SECONDS)
            else:
                with client:
                    self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        client.settimeout(TIMEOUT_SECONDS)
        name = ""
        try:
            with client.makefile("rb") as lines:
                name = lines.readline(LONGEST_NAME).decode(errors="replace").strip()
            page = self._pages.get(name)
            if page is not None:
                client.sendall(page())
        except OSError as error:
            logger.info("status socket: a client was not answered: %s", error)
        except Exception:
            logger.exception("status socket: page %s could not be made", name)


def ask(path: str, page: str, seconds: float) -> bytes:
    """Return a page that a status socket serves; raises OSError if it is not all there in time."""
    ends = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(seconds)
        with _reachable(path) as address:
            client.connect(address)
        client.sendall(f"{page}\n".encode())
        pieces = []
        while piece := client.recv(_PIECE):
            pieces.append(piece)
            left = ends - time.monotonic()
            if left <= 0:
                raise TimeoutError("the answer takes too long")
            client.settimeout(left)
    return b"".join(pieces)


def _not_serving() -> bytes:
    return json.dumps({"is_serving": False}).encode()


def _bind(server: socket.socket, path: str) -> None:
    with _reachable(path) as address:
        try:
            server.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or _is_answered(path):
                raise
            Path(path).unlink()
            server.bind(address)
    Path(path).chmod(0o600)  # no client can connect before it listens
    server.listen(BACKLOG)


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, _reachable(path) as address:
        return client.connect_ex(address) == 0


@contextlib.contextmanager
def _reachable(path: str) -> Iterator[str]:
    """The same file by a short name: addresses of sockets have at most 107 bytes."""
    directory = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{Path(path).name}"
    finally:
        os.close(directory)
