"""A command on a terminal of its own, which can be closed as a window is."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # it is ignored when the tests run under nohup
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """The command leads the session of its terminal, and is notified when that is closed."""

    def __init__(self, command: Sequence[str], directory: Path | None = None) -> None:
        self._other_end, end = pty.openpty()
        self._is_open = True
        self._output = b""
        self._process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *command],
            stdin=end,
            stdout=end,
            stderr=end,
            cwd=directory,
            start_new_session=True,
        )
        os.close(end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        self._process.kill()
        self._process.wait()

    def read_line_with(self, text: str, seconds: float) -> str:
        """Return the first line of output that holds `text`, once it is whole."""
        deadline = time.monotonic() + seconds
        while True:
            lines = self._output.decode(errors="replace").splitlines(keepends=True)
            for line in lines:
                if text in line and line.endswith("\n"):
                    return line.rstrip()
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._other_end], [], [], max(0.0, left))
            if not ready:
                raise AssertionError(f"no line with {text!r} in: {self._output!r}")
            self._output += os.read(self._other_end, 1 << 16)

    def hang_up(self) -> None:
        """Close the terminal: its session gets SIGHUP, and nothing can be written any more."""
        if self._is_open:
            self._is_open = False
            os.close(self._other_end)

    def wait(self, seconds: float) -> int:
        """Return the exit code of the command, which must end in time."""
        return self._process.wait(seconds)
