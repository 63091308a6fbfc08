"""A program that is to a supervisor what a broker is: `python -m … LOCK SOCKET HABIT`.

It holds the lock and says that it serves. By habit it ignores SIGTERM, refuses to start, or never
serves.
"""

from __future__ import annotations

import json
import signal
import sys

from broker.metrics.status_socket import STATUS, StatusSocket
from broker.node.member_lock import MemberLock


def main() -> int:
    lock_path, socket_path, habit = sys.argv[1:]
    if habit == "refuses":
        return 1
    if habit == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    lock = MemberLock.take(lock_path)
    if lock is None:
        return 1
    status = StatusSocket(socket_path)
    if habit != "mute":
        status.serve({STATUS: lambda: json.dumps({"is_serving": True, "out_of_sync": 0}).encode()})
    if habit == "stubborn":
        while True:
            signal.pause()
    signal.sigwait({signal.SIGTERM})
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[3] != "stubborn":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    sys.exit(main())
