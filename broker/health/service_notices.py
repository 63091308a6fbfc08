"""Notices to systemd for a service with `Type=notify`, and its watchdog (sd_notify(3)).

Datagrams to the socket that NOTIFY_SOCKET names: `READY=1` once clients are served, `STOPPING=1`
when the end begins, and, if WATCHDOG_USEC is there, `WATCHDOG=1` twice in that time. These come
from the event loop, so that a loop which is stuck is a service which is.
"""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.runtime.timers import Cancellable, Timers

logger = logging.getLogger(__name__)

ABSTRACT: Final = "@"
BEATS_IN_TIME: Final = 2
US_PER_MS: Final = 1000
RETRY_MS: Final = 100
MOST_TRIES: Final = 100
"""Maximum number of tries to send a message while the socket accepts none: for ten seconds."""


class ServiceNotices:
    """Notices of a service to its manager; without one they go nowhere."""

    def __init__(self, environ: Mapping[str, str], pid: int, timers: Timers) -> None:
        """`pid` is this process's, which the watchdog may not be meant for."""
        self._timers = timers
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._watchdog_ms = 0.0
        self._beats: Cancellable | None = None
        if environ.get("WATCHDOG_PID", str(pid)) == str(pid):
            self._watchdog_ms = _milliseconds(environ.get("WATCHDOG_USEC", ""))
        self._socket: socket.socket | None = None
        if self._address.startswith(("/", ABSTRACT)):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        elif self._address:
            logger.warning("NOTIFY_SOCKET %s: only unix sockets are known", self._address)

    def ready(self, status: str) -> None:
        """Report readiness; `status` is a line for `systemctl status`."""
        self._tell(f"READY=1\nSTATUS={status}")
        if self._socket is not None and self._watchdog_ms > 0:
            self._beat()
            self._beats = self._timers.every(self._watchdog_ms / BEATS_IN_TIME, self._beat)

    def stopping(self) -> None:
        """Report the end; no notice follows."""
        if self._beats is not None:
            self._beats.cancel()
        self._tell("STOPPING=1\nSTATUS=stopping")

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _beat(self) -> None:
        self._tell("WATCHDOG=1", MOST_TRIES)  # the next one comes soon

    def _tell(self, text: str, tried: int = 0) -> None:
        if self._socket is None:
            return
        address = self._address
        if address.startswith(ABSTRACT):
            address = "\0" + address.removeprefix(ABSTRACT)
        try:
            self._socket.sendto(text.encode(), address)
        except BlockingIOError as error:
            if tried < MOST_TRIES:
                self._timers.schedule(RETRY_MS, lambda: self._tell(text, tried + 1))
            else:
                self._lament(text, error)
        except OSError as error:
            self._lament(text, error)

    def _lament(self, text: str, error: OSError) -> None:
        message = text.partition("\n")[0]
        logger.warning("service manager at %s did not take %s: %s", self._address, message, error)


def _milliseconds(text: str) -> float:
    """The interval of the watchdog; 0 for an invalid number."""
    return int(text) / US_PER_MS if text.isascii() and text.isdecimal() else 0.0
