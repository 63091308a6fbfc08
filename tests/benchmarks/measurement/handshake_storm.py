"""Clients that shake hands over TLS, so many a second, and leave: a process of its own.

    python -m tests.benchmarks.measurement.handshake_storm PORT CA_FILE PER_SECOND SECONDS

Each handshake is a full one, on a connection of its own. It prints how many were done.
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENTS = 16
"""At a time; OpenSSL lets other threads work meanwhile."""
TIMEOUT_SECONDS = 30.0
HOST = "localhost"


def main(arguments: Sequence[str]) -> None:
    """Shake hands evenly over the time, and print how often that was."""
    port, ca_file, per_second, seconds = arguments
    context = ssl.create_default_context(cafile=ca_file)
    count = int(int(per_second) * float(seconds))
    began = time.perf_counter()

    def shake_hands(number: int) -> bool:
        time.sleep(max(0.0, began + number / int(per_second) - time.perf_counter()))
        try:
            with (
                socket.create_connection((HOST, int(port)), TIMEOUT_SECONDS) as connected,
                context.wrap_socket(connected, server_hostname=HOST) as secured,
            ):
                return secured.version() is not None
        except OSError:
            return False

    with ThreadPoolExecutor(CLIENTS) as clients:
        done = sum(clients.map(shake_hands, range(count)))
    print(done, f"{time.perf_counter() - began:.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
