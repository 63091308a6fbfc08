"""The process of one broker: started or found, asked to end, watched for its end.

It is held by a descriptor, so that no signal ever reaches a process that reuses its id. A broker is
in a session of its own: neither Ctrl-C nor a closed terminal reaches it, and it writes to its
supervisor's output, so that it can go on writing when that one is gone.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from contextlib import suppress
from typing import Final

from broker.node.member_lock import holder
from config.machine.own_program import environment

DEFAULT_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class BrokerProcess:
    """Made on the event loop, which hears when the process has ended."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.ended = asyncio.Event()
        self.exit_code: int | None = None
        """Once it has ended: negative for a signal, None if it is not known."""
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._note_end)

    @classmethod
    def start(cls, command: tuple[str, ...]) -> BrokerProcess:
        """Start a process; raises OSError."""
        nothing_to_read = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        pid = os.posix_spawn(
            command[0],
            command,
            environment(os.environ),
            file_actions=[nothing_to_read],
            setsid=True,
            setsigmask=[],
            setsigdef=DEFAULT_SIGNALS,
        )
        return cls(pid, os.pidfd_open(pid))

    @classmethod
    def find(cls, lock: str) -> BrokerProcess | None:
        """The process that holds a broker's lock, if any does; raises OSError."""
        while (pid := holder(lock)) is not None:
            if pid <= 0:  # of another container that has the same directory
                why = "it is locked by a process that cannot be seen from here"
                raise OSError(errno.EBUSY, why, lock)
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            if holder(lock) == pid:  # so it was this process all the time
                return cls(pid, descriptor)
            os.close(descriptor)
        return None

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if not self.ended.is_set():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def let_go(self) -> None:
        """Stop watching it; the process goes on."""
        if not self.ended.is_set():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _note_end(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        with suppress(ChildProcessError):  # it is the child of a supervisor before this one
            _, status = os.waitpid(self.pid, os.WNOHANG)
            self.exit_code = os.waitstatus_to_exitcode(status)
        self.ended.set()
