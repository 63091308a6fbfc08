"""Bytes on their way to the end of a segment's file, written on another thread.

The segment does not count them until they are accounted for. Any change of the segment before that
voids them: it waits for the write, if it has begun, and truncates the file to the counted size.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protocol.wire import Buffer
    from storage.filesystem import File


class PendingWrite:
    """One write. `run` may be called on any thread, once; all else on that of the log."""

    __slots__ = ("_data", "_has_begun", "_lock", "_position", "error", "file", "is_void")

    def __init__(self, file: File, position: int, data: Buffer) -> None:
        self.file = file
        """Open, whatever the segment has open."""
        self._position = position
        self._data = data
        self._lock = Lock()
        self._has_begun = False
        self.is_void = False
        self.error: OSError | None = None
        """Its error, if it failed."""

    def run(self) -> None:
        """Write, unless it is void by now; raises nothing."""
        with self._lock:
            if self.is_void:
                return
            self._has_begun = True
            try:
                self.file.write_at(self._position, self._data)
            except OSError as error:
                self.error = error

    def void(self) -> bool:
        """See to it that nothing is written from now on; returns whether something may have been.

        Waits for a write that has begun.
        """
        with self._lock:
            self.is_void = True
            return self._has_begun
