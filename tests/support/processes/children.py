"""Processes that others have started: that they do not outlive tests, and which they are."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Put in front of a command: the kernel kills it when its parent is gone (util-linux)."""


def children_of(pid: int) -> list[int]:
    """The ids of the processes that a process has started; a thread that just ended has none."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found
