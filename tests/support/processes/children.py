"""Processes that others have started: that they do not outlive tests, which they are, freezing."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.support.processes.waiting import wait_until

HALTED = "TtZX"
"""The states of threads in /proc/<pid>/task/<tid>/stat that take no step: stopped, or ended."""
STOPPING_SECONDS = 60.0
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Put in front of a command: the kernel kills it when its parent is gone (util-linux)."""


def children_of(pid: int) -> list[int]:
    """The ids of the processes that a process has started; a thread that just ended has none."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def freeze(pid: int) -> None:
    """SIGSTOP, and wait until it holds: one thread takes the signal and stops the others.

    Until that one has its turn, on a busy machine the others go on for milliseconds.
    """
    os.kill(pid, signal.SIGSTOP)
    assert wait_until(
        lambda: all(state in HALTED for state in _states(pid)), STOPPING_SECONDS, 0.002
    )


def _states(pid: int) -> list[str]:
    """The state of each thread; of one that just ended there is none."""
    found: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            stat = (task / "stat").read_text(encoding="ascii", errors="replace")
            found.append(stat.rpartition(")")[2].split()[0])
    return found
