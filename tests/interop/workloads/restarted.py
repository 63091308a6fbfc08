"""A process that is started again, whenever it fails or is killed, until it ends with success."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.jars import REPOSITORY
from tests.support.processes.children import DIES_WITH_PARENT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Restarted:
    """A job, by its command; the output of all its runs is in one file."""

    def __init__(self, name: str, command: Sequence[str], output: Path) -> None:
        self.name = name
        self.is_done = False
        self.starts = 0
        self._command = [*DIES_WITH_PARENT, *command]
        self._output = output
        self._process = self._start()

    @classmethod
    def python(cls, name: str, module: str, argument: str, output: Path) -> Restarted:
        """Run a module of this repository with one argument."""
        return cls(name, [sys.executable, "-m", module, argument], output)

    def keep_up(self) -> bool:
        """Start it again if it failed; say whether it is done."""
        code = self._process.poll()
        self.is_done = self.is_done or code == 0
        if not self.is_done and code is not None:
            self._process = self._start()
        return self.is_done

    def kill(self) -> None:
        """End it with SIGKILL, if it runs; `keep_up` starts it again."""
        self._process.kill()
        self._process.wait()

    def said(self) -> str:
        """Return the end of its output."""
        return self._output.read_text(errors="replace")[-3000:]

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self._output.open("ab") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=output, cwd=REPOSITORY)
