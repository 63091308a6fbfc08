"""A port that stays reserved for the broker while it is down, so that it finds it again.

Linux gives a port that is bound, and not listened on, to no other socket; connecting to it is
refused, as at a host whose broker has died. With SO_REUSEADDR on both, the broker listens on it
beside the reservation. Other systems refuse a second socket that, so there is no reservation.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

HOST: Final = "127.0.0.1"


class ReservedPort:
    """One port of the loopback interface, chosen by the system."""

    def __init__(self) -> None:
        self._holder: socket.socket | None = socket.socket()
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind((HOST, 0))
        self.number: int = self._holder.getsockname()[1]
        if sys.platform != "linux":
            self.release()

    def release(self) -> None:
        """Release the port."""
        if self._holder is not None:
            self._holder.close()
            self._holder = None
