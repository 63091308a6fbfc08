"""The process that rewrites segments for the log cleaner, as the broker holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.maintenance.side_process import ProcessEndedError, SideProcess
from storage import compaction
from storage.compaction.job import GO_ON, decode_report

if TYPE_CHECKING:
    from storage.compaction.job import Report


class CleanerProcess(SideProcess):
    """Started with the first job; `close` ends it, and the next job starts another."""

    def __init__(self) -> None:
        super().__init__(compaction.__name__)

    async def report(self, timeout_seconds: float) -> Report | None:
        """Its next report; None if there is none within the timeout.

        Raises ProcessEndedError.
        """
        line = await self.line(timeout_seconds)
        try:
            return None if line is None else decode_report(line)
        except (ValueError, KeyError, TypeError):
            raise ProcessEndedError(f"its process says {line!r:.100}") from None

    async def go_on(self) -> None:
        """Give the go-ahead: its last report is dealt with."""
        await self.submit(GO_ON)
