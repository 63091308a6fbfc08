"""One of the broker's `log.dirs`, as its logs see it: where it is and whether its disk works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import EXHAUSTION, DeletedLogError, ExhaustedError, LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from storage.disk import Disk


class LogDirectory:
    """Goes offline with the first disk error, once and for all until the broker starts again.

    As a context manager it turns an OSError of the code within into LogDirectoryError. One that
    reports exhausted descriptors or memory is not a disk error and becomes an ExhaustedError; the
    code within must not have changed anything before it can raise one.
    """

    __slots__ = ("disk", "failure", "on_cut", "on_exhaustion", "on_failure", "path")

    def __init__(
        self, path: str, disk: Disk, on_failure: Callable[[LogDirectory], None] | None = None
    ) -> None:
        self.path = path
        self.disk = disk
        self.on_failure = on_failure
        self.on_exhaustion: Callable[[ExhaustedError], None] | None = None
        self.on_cut: Callable[[], None] | None = None
        """Called when a log was cut below its recovery point."""
        self.failure: LogDirectoryError | None = None
        """Raise it `with_traceback(None)`: otherwise it keeps the frames of each time before, with
        the requests that were refused there.
        """

    def __enter__(self) -> None:
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exception, OSError):
            raise self.fail(exception) from exception

    def fail(self, error: OSError) -> LogDirectoryError:
        """Take the directory offline, if it is the disk's error; returns what to raise."""
        if error.errno in EXHAUSTION:
            exhausted = ExhaustedError(self.path, error.strerror or str(error))
            if self.on_exhaustion is not None:
                self.on_exhaustion(exhausted)
            return exhausted
        if self.failure is None:
            reason = error.strerror or str(error)
            where = f"{error.filename}: " if error.filename not in (None, self.path) else ""
            self.failure = LogDirectoryError(self.path, f"{where}{reason}")
            if self.on_failure is not None:
                self.on_failure(self)
        return self.failure.with_traceback(None)

    def as_left_by(self, log: str) -> LogDirectory:
        """The directory as seen by a deleted log, for which all operations fail."""
        left = LogDirectory(self.path, self.disk)
        left.failure = DeletedLogError(self.path, log)
        return left
