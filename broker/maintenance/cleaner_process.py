"""The process that rewrites segments for the log cleaner, as the broker holds it.

Why a process: docs/decisions/0015-compaction-in-a-process-of-its-own.md.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import storage
from storage.compaction.job import decode_report
from storage.compaction.worker import GO_ON

if TYPE_CHECKING:
    from storage.compaction.job import Report

COMMAND: Final = (sys.executable, "-m", "storage.compaction")
CODE_DIRECTORY: Final = Path(storage.__file__).parents[1]


class ProcessEndedError(Exception):
    """The process is gone, or makes no sense; the text says which."""


class CleanerProcess:
    """Started with the first job; `close` ends it, and the next job starts another."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def submit(self, job: bytes) -> None:
        """Have it begin a job. Raises OSError when there can be no process."""
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C, or the end of the terminal, is for the broker, which then ends this one.
                process_group=0,
                # Where the broker was started need not be where its code is.
                env={**os.environ, "PYTHONPATH": str(CODE_DIRECTORY)},
            )
        await self._send(job)

    async def report(self, timeout_seconds: float) -> Report | None:
        """What it says next; None when it says nothing for so long.

        Raises ProcessEndedError.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), timeout_seconds)
        except TimeoutError:
            return None
        if not line.endswith(b"\n"):
            code = await self._process.wait()
            self._process = None
            raise ProcessEndedError(f"its process ended with code {code}")
        try:
            return decode_report(line)
        except (ValueError, KeyError, TypeError):
            raise ProcessEndedError(f"its process says {line[:100]!r}") from None

    async def go_on(self) -> None:
        """Tell it that what it reported is done with."""
        await self._send(GO_ON)

    async def close(self) -> None:
        """End it at once, whatever it is doing; returns when it is gone."""
        process = self._process
        if process is not None:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            await process.wait()
            self._process = None  # not before: whoever is cancelled meanwhile calls once more

    async def _send(self, line: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        try:
            await self._process.stdin.drain()
        except ConnectionError:
            return  # `report` will say so
