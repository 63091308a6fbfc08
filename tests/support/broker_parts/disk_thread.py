"""A thread for what waits for the disk, as a broker has some: the event loop must not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class DiskThread(ThreadPoolExecutor):
    """A single thread, so that work is done in order."""

    def __init__(self) -> None:
        super().__init__(1, thread_name_prefix="disk")

    def run_later(self, work: Callable[[], None]) -> None:
        """`LogSettings.run_later`."""
        self.submit(work)
