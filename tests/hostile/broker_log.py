"""The broker's own log while it is mistreated."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.hostile.watched_broker import HELD, MEMORY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hostile.findings import Findings

BAD: Final = re.compile(
    r"Traceback \(most recent|^\S+ \S+ (ERROR|CRITICAL) |exception was never retrieved"
    r"|socket\.send\(\) raised|Exception ignored|Fatal Python error"
)
LEVEL: Final = re.compile(r"^\S+ \S+ (WARNING|ERROR|CRITICAL) (\S+): (.*)")
VARYING: Final = re.compile(
    r"127\.0\.\d+\.\d+:\d+|'[^']*'|\"[^\"]*\"|-?\d+|fuzz\S*|\b[0-9A-Za-z_-]{22}\b"
)
HELD_LINE: Final = re.compile(rf"{HELD} (\d+) ms: (.*)")
LONGEST_LINE: Final = 300
CONTEXT_LINES: Final = 30
CALL: Final = re.compile(r'File "[^"]*?([^/"]+", line \d+, in \w+)')
DEPTH: Final = 2
"""Calls by which traces are told apart."""


class BrokerLog:
    """Reads what was added since the last look."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self._path = path
        self._findings = findings
        self._position = 0
        self._trace: list[str] = []
        self.bytes = 0
        self.warnings: Counter[str] = Counter()
        """Count of each kind of warning, with the variable parts left out."""
        self.held: list[tuple[int, str]] = []
        """Milliseconds for which something held the event loop up, and what."""
        self.memory: dict[str, Any] = {}
        """The broker's report on its memory, on request."""

    def look(self) -> None:
        """Find what should not be there."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            data = file.read()
        whole = data.rfind(b"\n") + 1
        self._position += whole
        self.bytes += whole
        for line in data[:whole].decode(errors="replace").split("\n"):
            self._line(line)

    def close(self) -> None:
        """There will be nothing more."""
        self.look()
        self._tell_trace()

    def _line(self, line: str) -> None:
        held = HELD_LINE.match(line)
        if held is not None:
            self.held.append((int(held[1]), held[2]))
            return
        if line.startswith(f"{MEMORY} {{"):
            self.memory = json.loads(line.removeprefix(MEMORY))
            return
        level = LEVEL.match(line)
        if level is not None or re.match(r"^\d{4}-\d\d-\d\d ", line):
            self._tell_trace()
        if level is not None:
            self.warnings[_kind(f"{level[1]} {level[2]}: {level[3]}")] += 1
        if self._trace:
            self._trace.append(line)
        elif BAD.search(line):
            self._trace = [line]

    def _tell_trace(self) -> None:
        trace, self._trace = [line for line in self._trace if line], []
        if trace:
            calls = [call[1] for line in trace if (call := CALL.search(line))]
            end = trace[-1] if calls else trace[0].partition(": ")[2]
            kind = f"logged {_kind(end)} in {' < '.join(reversed(calls[-DEPTH:]))}"
            self._findings.add(kind, "\n    ".join(trace[:1] + trace[1:][-CONTEXT_LINES:]))


def _kind(text: str) -> str:
    return VARYING.sub("#", text[:LONGEST_LINE])
