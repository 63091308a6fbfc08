"""Errors of storage: a failed disk at run time, an unusable directory at start-up."""

from __future__ import annotations

import errno
from typing import Final

from protocol.errors import ApiError, ErrorCode

EXHAUSTION: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of opening or mapping a file that signal a lack of descriptors or memory, not of disk."""


class LogDirectoryError(ApiError):
    """A log directory failed and is offline; clients get KAFKA_STORAGE_ERROR and look elsewhere."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {directory}: {reason}")
        self.directory = directory


class DeletedLogError(LogDirectoryError):
    """The log was deleted before; its directory works."""

    def __init__(self, directory: str, log: str) -> None:
        super().__init__(directory, f"{log} was deleted")


class ExhaustedError(LogDirectoryError):
    """A file could not be opened or mapped for now; the directory stays online.

    Nothing was changed by what met it, and the same may succeed the next time. Clients get
    KAFKA_STORAGE_ERROR and try again.
    """


class DirectoryRefusedError(Exception):
    """The broker must not start on this directory; the message is one line for the operator."""


class DamagedFileError(ApiError):
    """A file is damaged; the message has the file and the damage."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, reason)


class DamagedDelaysError(DamagedFileError):
    """The delay index of a segment is wrong; `LogDelays.rebuild` rebuilds it."""

    def __init__(self, reason: str, base_offset: int) -> None:
        super().__init__(reason)
        self.base_offset = base_offset
        """Of the segment."""
