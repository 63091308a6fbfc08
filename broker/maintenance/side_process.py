"""A process beside the broker, as the broker holds it.

Why processes: docs/decisions/0015-compaction-in-a-process-of-its-own.md.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import suppress
from typing import Final

from config.machine.own_program import environment, module_command

LONGEST_LINE: Final = 1 << 16


class ProcessEndedError(Exception):
    """The process is gone, or makes no sense; the text says which."""


class SideProcess:
    """Started with the first line for it; `close` ends it, and the next line starts another."""

    def __init__(self, module: str, *arguments: str) -> None:
        """`module` is the name of what `python -m` runs, with these arguments."""
        self._command = module_command(module, *arguments)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def is_running(self) -> bool:
        """True if there is a process."""
        return self._process is not None

    async def start(self) -> None:
        """See to it that it runs. Raises OSError when there can be no process."""
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C, or the end of the terminal, is for the broker, which then ends this one.
                process_group=0,
                env=environment(os.environ),
                limit=LONGEST_LINE,
            )

    async def submit(self, line: bytes) -> None:
        """Send it a line. Raises OSError when there can be no process."""
        await self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        try:
            await self._process.stdin.drain()
        except ConnectionError:
            return  # `line` reports it

    async def line(self, timeout_seconds: float) -> bytes | None:
        """Its next line; None if there is none within the timeout.

        Raises ProcessEndedError.
        """
        output = self._output()
        try:
            # Not `wait_for`, which in Python 3.11 forgets a cancellation that comes with the line.
            async with asyncio.timeout(timeout_seconds):
                line = await output.readline()
        except TimeoutError:
            return None
        if not line.endswith(b"\n"):
            raise await self._ended()
        return line

    async def read(self, length: int) -> bytes:
        """The `length` bytes that it has announced. Raises ProcessEndedError."""
        try:
            return await self._output().readexactly(length)
        except asyncio.IncompleteReadError:
            raise await self._ended() from None

    async def close(self) -> None:
        """End it at once; returns when it is gone."""
        process = self._process
        if process is not None:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            await process.wait()
            self._process = None  # not before: a caller cancelled meanwhile calls again

    def _output(self) -> asyncio.StreamReader:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout

    async def _ended(self) -> ProcessEndedError:
        assert self._process is not None
        code = await self._process.wait()
        self._process = None
        return ProcessEndedError(f"its process ended with code {code}")
