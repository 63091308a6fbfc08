"""Resource usage of processes: processor time and resident memory, from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Use:
    """Usage of one process, or of several together."""

    cpu_seconds: float = 0.0
    """Processor time since they began, user and system, without children that have ended."""

    resident_bytes: int = 0

    def __add__(self, other: Use) -> Use:
        return Use(self.cpu_seconds + other.cpu_seconds, self.resident_bytes + other.resident_bytes)


def use_of(pids: Iterable[int]) -> Use:
    """Return what processes use together; one that has ended uses nothing."""
    return sum((_use(pid) for pid in pids), Use())


def group_members(group: int) -> list[int]:
    """Return the living processes of a process group."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        stat = _stat(int(entry.name))
        if stat and stat[0] not in {"Z", "X"} and int(stat[2]) == group:
            found.append(int(entry.name))
    return found


def _use(pid: int) -> Use:
    stat = _stat(pid)
    if not stat:
        return Use()
    ticks = int(stat[11]) + int(stat[12])
    return Use(ticks / TICKS_PER_SECOND, int(stat[21]) * PAGE_BYTES)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; nothing if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
