"""The process's file descriptors: as many as the system allows, and not all of them for clients.

A descriptor is needed for each connection, and a second one for each that is sent large pieces of
logs; for each `.log` file and, before Python 3.13, each index that is kept open; and for a moment
for nearly every file operation. If connections took all of them, none could be served.

    0 ........................ limit - reserved .................... limit
    |  connections, cached files, all else  |  not for connections  |

So the limit is raised as far as allowed, the number of open log files is sized by it, and a
connection is refused that would leave less than the rest of the reserve.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.runtime.throttled_log import ThrottledLog
from storage.disk import INDEX_DESCRIPTORS, MAPPINGS_LIMIT, Disk
from storage.open_file_cache import OpenFileCache

if TYPE_CHECKING:
    import asyncio

    from broker.runtime.clock import Clock
    from storage.errors import ExhaustedError
    from storage.filesystem import FileSystem

logger = logging.getLogger(__name__)

OTHERS: Final = 64
"""Descriptors for everything but connections and cached files: locks, the metadata store, other
brokers, listeners, the log cleaner, and files that are open for a moment on a dozen threads.
"""
LOGS_PART: Final = 4
"""Divisor of all descriptors that gives the part kept for cached files."""
MOST_FILES: Final = 16_384
"""Files of logs that are kept open, however many may be: each costs the kernel a kilobyte."""
FEWEST: Final = 4
"""Files, and indexes, that are kept open, however few may be."""
WITHOUT_LIMIT: Final = 1 << 20
"""Descriptors assumed for a limit of "unlimited"."""


class Shares(NamedTuple):
    """Partition of the descriptors."""

    limit: int
    """Of all."""
    reserved: int
    """Not for connections."""
    files: int
    """Files of logs that may be kept open."""
    indexes: int
    """Indexes that may be kept mapped."""


def share_out(limit: int, reserved: int) -> Shares:
    """Share `limit` out. `reserved` is reserved.file.descriptors; negative for what suits."""
    others = min(OTHERS, limit // LOGS_PART)
    if reserved < 0:
        reserved = limit // LOGS_PART + others
    reserved = min(reserved, limit)
    cached = max(reserved - others, reserved // 2)
    indexes = max(cached // 3, FEWEST) if INDEX_DESCRIPTORS else MAPPINGS_LIMIT
    indexes = min(indexes, MAPPINGS_LIMIT)
    files = min(max(cached - INDEX_DESCRIPTORS * indexes, FEWEST), MOST_FILES)
    kept = files + INDEX_DESCRIPTORS * indexes + others
    return Shares(limit, min(reserved, max(kept, FEWEST)), files, indexes)


class Limit(NamedTuple):
    """Of the files and sockets that this process may have open."""

    found: int
    now: int


def raise_limit() -> Limit:
    """Raise the limit of open files as far as this process may, as Java does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            logger.warning("open files: the limit stays at %d: %s", soft, error)
            hard = soft
    return Limit(soft, WITHOUT_LIMIT if hard == resource.RLIM_INFINITY else hard)


class OpenFiles:
    """Descriptors of one broker. Without a limit, as in a simulation, there are always enough."""

    def __init__(self, limit: Limit | None, reserved: int, clock: Clock) -> None:
        """`reserved` is reserved.file.descriptors."""
        self._limit = limit
        self._shares = None if limit is None else share_out(limit.now, reserved)
        self._disk: Disk | None = None
        self._refusals = ThrottledLog(logger, clock)
        self._exhaustion = ThrottledLog(logger, clock)
        self.refused_connections = 0
        """Connections refused so far."""
        self.exhaustions = 0
        """Number of failures so far to open a file of a log."""

    def disk(self, filesystem: FileSystem) -> Disk:
        """The disk, with as much of it open as this process can afford; a line says how much."""
        shares = self._shares
        if shares is None or self._limit is None:
            self._disk = Disk(filesystem)
            return self._disk
        logger.info(
            "open files: limit %d, %d at start; at most %d log files and %d indexes are kept open, "
            "and %d descriptors are reserved",
            self._limit.now,
            self._limit.found,
            shares.files,
            shares.indexes,
            shares.reserved,
        )
        self._disk = Disk(filesystem, OpenFileCache(shares.files), OpenFileCache(shares.indexes))
        return self._disk

    def refusal(self) -> str | None:
        """None if there is room for a connection; otherwise "", as it is logged here."""
        shares = self._shares
        if shares is None or self._used() < shares.limit - shares.reserved:
            return None
        self.refused_connections += 1
        self._refusals.warn(
            f"connection refused: of {shares.limit} file descriptors, {shares.reserved} are not "
            "for connections (reserved.file.descriptors), and all others are in use"
        )
        return ""

    def note_exhaustion(self, error: ExhaustedError) -> None:
        """A file of a log could not be opened; from any thread."""
        self.exhaustions += 1
        self._exhaustion.warn(f"a request failed for now: {error.message}")

    def _used(self) -> int:
        """Descriptors in use, without files of logs that would be closed for others.

        The kernel gives the lowest number that is free, so there are at least as many in use.
        """
        shares, disk = self._shares, self._disk
        assert shares is not None
        try:
            lowest = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in {errno.EMFILE, errno.ENFILE}:
                raise
            return shares.limit
        os.close(lowest)
        cached = 0 if disk is None else len(disk.files) + INDEX_DESCRIPTORS * len(disk.maps)
        return lowest - cached


class LoopErrors:
    """Loop exception handler for errors without an owner; a frequent one is throttled.

    If there is no descriptor for a connection, asyncio logs a traceback for each place in the
    backlog, before it rests for a second.
    """

    def __init__(self, clock: Clock) -> None:
        self._accepting = ThrottledLog(logger, clock)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """`asyncio.AbstractEventLoop.set_exception_handler` takes this."""
        error = context.get("exception")
        if isinstance(error, OSError) and "socket.accept()" in context["message"]:
            self._accepting.warn(f"no connection can be accepted for a second: {error.strerror}")
        else:
            loop.default_exception_handler(context)
