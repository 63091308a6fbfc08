"""The other end of `in_process`: a broker that carries out calls of the parent process.

`python -m broker.embedded.engines.child NUMBER` is started by it, with the descriptor of a socket.
"""

from __future__ import annotations

import gc

gc.disable()  # while all is imported, which takes an eighth longer with it

# ruff: noqa: E402
import signal
import sys
from multiprocessing.connection import Connection
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from broker.embedded.engines.engine import DISMISS
from broker.embedded.engines.on_thread import thread_engine
from broker.embedded.errors import EmbeddedBrokerError
from broker.embedded.machine.own_directory import remove_own_directory

if TYPE_CHECKING:
    from broker.embedded.engines.on_thread import ThreadEngine
    from broker.embedded.settings import BrokerSettings


def main(number: int) -> None:
    """Serve until the parent has closed its end, or has died."""
    gc.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    way: Connection[Any, Any] = Connection(number)
    settings: BrokerSettings = way.recv()
    engine = thread_engine(settings)
    is_dismissed = False
    try:
        is_dismissed = _serve(way, engine)
    finally:
        engine.ask("stop")
        engine.close()
        if not is_dismissed:  # the parent was killed, and cannot tidy up
            remove_own_directory(settings.directory)


def _serve(way: Connection[Any, Any], engine: ThreadEngine) -> bool:
    """Carry out requests; return whether the parent has dismissed this process."""
    while True:
        try:
            operation, arguments = way.recv()
        except (EOFError, OSError):
            return False
        if operation == DISMISS:
            return True
        try:
            answer = (True, engine.ask(operation, *arguments))
        except Exception as error:  # noqa: BLE001 - raised where it was asked for
            answer = (False, error)
        try:
            way.send(answer)
        except (TypeError, ValueError, AttributeError, PicklingError) as error:
            way.send((False, EmbeddedBrokerError(f"{operation}: {answer[1]!r}: {error}")))


if __name__ == "__main__":
    main(int(sys.argv[1]))
