"""The process of honest clients, as the run that started it sees it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.support.jars import REPOSITORY
from tests.support.processes.children import DIES_WITH_PARENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.findings import Findings

READY_SECONDS: Final = 120.0
END_SECONDS: Final = 300.0


@dataclass(slots=True)
class ControlReport:
    """Final report of the controls."""

    latencies_ms: list[float] = field(default_factory=list)
    acknowledged: dict[int, dict[int, int]] = field(default_factory=dict)
    """Of the ledger: by partition, the number of the record at each offset."""
    committed_transfers: int = 0
    group_records: int = 0
    group_seconds_of_silence: float = 0.0

    def quantile_ms(self, share: float) -> float:
        """So many of all answers came within this time."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class ControlProcess:
    """Started when the broker serves, ended before it is stopped."""

    def __init__(self, port: int, findings: Findings, on_stall: Callable[[], None]) -> None:
        """`on_stall` is called, in a thread, when Metadata has not been answered for long."""
        self._findings = findings
        self._on_stall = on_stall
        self._ready = threading.Event()
        self._report: dict[str, Any] = {}
        self._process = subprocess.Popen(
            [*DIES_WITH_PARENT, sys.executable, "-m", "tests.hostile.clients.controls", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_until_ready(self) -> None:
        """Return when each of them has done something."""
        if not self._ready.wait(READY_SECONDS):
            self._findings.add("controls", "they do not get to work")

    def end(self) -> ControlReport:
        """Have them finish, and return what they saw."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._findings.add("controls", "they do not end")
            self.kill()
        self._listener.join()
        return self._read(self._report)

    def kill(self) -> None:
        """End them at once, if they have not ended."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if told["kind"] == "ready":
                self._ready.set()
            elif told["kind"] == "stall":
                self._on_stall()
            elif told["kind"] == "report":
                self._report = told

    def _read(self, told: dict[str, Any]) -> ControlReport:
        if not told:
            self._findings.add("controls", "they ended without a report")
            return ControlReport()
        for problem in told["problems"]:
            self._findings.add("controls", problem)
        acknowledged = {
            int(partition): dict(map(tuple, pairs))
            for partition, pairs in told["acknowledged"].items()
        }
        return ControlReport(
            told["latencies_ms"],
            acknowledged,
            told["committed_transfers"],
            told["group_records"],
            told["group_seconds_of_silence"],
        )
