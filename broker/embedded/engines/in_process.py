"""A broker in a process of its own, which ends with the one that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any, Final

from broker.embedded.engines.engine import DISMISS
from broker.embedded.errors import EmbeddedBrokerError
from config.machine.own_program import environment, module_command

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from broker.embedded.settings import BrokerSettings

CHILD: Final = __name__.replace("in_process", "child")
"""Not imported here, where the collector of garbage is the user's."""
STOP_SECONDS: Final = 30
BEGINNINGS: Final = frozenset({"restore", "start"})
"""Operations for which a killed broker gets another process."""


class ProcessEngine:
    """`Engine` in a child process; killed and paused by signals."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._way: Connection[Any, Any] | None = None
        self._owner = os.getpid()
        self._is_paused = False

    @property
    def is_paused(self) -> bool:
        """True if its process is stopped."""
        return self._is_paused

    def ask(self, operation: str, *arguments: object) -> Any:  # noqa: ANN401 - see Engine
        """Have the child do it."""
        if operation == "is_running" and (self._child is None or self._is_paused):
            return self._child is not None
        self._check()
        if operation in BEGINNINGS and self._child is None:
            self._spawn()
        with self._lock:
            try:
                way = self._connected()
                way.send((operation, arguments))
                is_well, outcome = way.recv()
            except (EOFError, OSError) as error:
                raise EmbeddedBrokerError(f"the broker's process has ended: {error}") from None
        if is_well:
            return outcome
        raise outcome

    def kill(self) -> None:
        """End the process."""
        self._check_owner()
        if self._child is not None:
            self._child.kill()
            self._reap()

    def pause(self) -> None:
        """Stop the process."""
        self._check()
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)
        # Its threads stop one by one; an end of the process is left for `_reap` to see.
        os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._is_paused = True

    def resume(self) -> None:
        """Continue the process."""
        if self._child is not None and self._is_paused:
            self._child.send_signal(signal.SIGCONT)
        self._is_paused = False

    def close(self) -> None:
        """Wait for the process, which ends when its connection is closed."""
        if self._owner != os.getpid() or self._child is None:
            return
        self.resume()
        if self._way is not None:
            with suppress(OSError):  # it has ended by itself
                self._way.send((DISMISS, ()))
            self._way.close()
            self._way = None
        try:
            self._child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self._reap()

    def _spawn(self) -> None:
        ours, theirs = Pipe()
        self._child = subprocess.Popen(  # noqa: S603 - this interpreter, and a module of ours
            module_command(CHILD, str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            env=environment(os.environ),
        )
        theirs.close()
        self._way = ours
        ours.send(self._settings)

    def _connected(self) -> Connection[Any, Any]:
        if self._way is None:
            raise EmbeddedBrokerError("the broker does not run")
        return self._way

    def _reap(self) -> None:
        if self._child is not None:
            self._child.wait()
            self._child = None
        if self._way is not None:
            self._way.close()
            self._way = None
        self._is_paused = False

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            raise EmbeddedBrokerError(
                f"the broker belongs to process {self._owner}, of which this one is a fork"
            )

    def _check(self) -> None:
        self._check_owner()
        if self._is_paused:
            raise EmbeddedBrokerError("the broker is paused: call resume() first")
