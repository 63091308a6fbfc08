"""The disk of an embedded broker: the real one, with the faults set by a test.

Flushes return at once. A killed broker loses nothing by that, as the kernel has the written data,
and no test switches the machine off. A full disk refuses operations that need room. The disk of a
killed broker refuses all writes: the broker's threads end as if the kernel had ended them.
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING

from storage.filesystem import READ_MODE, LocalFile, LocalFileSystem, Space, sync_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.wire import Buffer
    from storage.filesystem import Entry, File, Stamp


class EmbeddedDisk:
    """`storage.filesystem.FileSystem` of one life of a broker."""

    def __init__(self, *, is_full: bool = False) -> None:
        self._local = LocalFileSystem()
        self._locks: list[LocalFile] = []
        self.is_full = is_full
        self.is_dead = False

    def die(self) -> None:
        """Take nothing in from now on, and let the next life have the locks."""
        self.is_dead = True
        self.unlock()

    def unlock(self) -> None:
        """Release the locks of a broker that has ended, even if there are references to them."""
        for lock in self._locks:
            fcntl.flock(lock.fileno(), fcntl.LOCK_UN)
        self._locks.clear()

    def check_room(self) -> None:
        """Raise the error of a full disk, if it is full."""
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # Files

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing."""
        if create and not self._local.exists(path):
            self.check_room()
            if self.is_dead:
                path = os.devnull
        return EmbeddedFile(self, self._local.open(path, create=create))

    def lock(self, path: str) -> File | None:
        """Lock a file for as long as the result lives, or until its broker is killed."""
        lock = self._local.lock(path)
        if lock is not None:
            self._locks.append(lock)
        return lock

    # Reads

    def scan(self, path: str) -> list[Entry]:
        """Entries of a directory."""
        return self._local.scan(path)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""
        return self._local.names(path)

    def stamp(self, path: str) -> Stamp | None:
        """Return that of a file or directory."""
        return self._local.stamp(path)

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        return self._local.exists(path)

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self._local.read(path)

    def space(self, path: str) -> Space:
        """Return the room on the volume."""
        total, usable = self._local.space(path)
        return Space(total, 0 if self.is_full else usable)

    def sync_directory(self, path: str) -> None:
        """Return at once."""

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        """Return at once."""
        return sync_each(files)

    @property
    def syncs_together(self) -> bool:
        """There are no waits."""
        return True

    def sync_all(self) -> None:
        """Return at once."""

    # Writes

    def replace(self, path: str, data: bytes, *, sync: bool, mode: int = READ_MODE) -> None:  # noqa: ARG002
        """Put a whole file in place at once."""
        if not self.is_dead:
            self.check_room()
            self._local.replace(path, data, sync=False, mode=mode)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        if not self.is_dead:
            if not self._local.exists(path):
                self.check_room()
            self._local.make_directory(path)

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory."""
        if not self.is_dead:
            self._local.rename(source, target)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Say that a file was last changed at `modified_ms`."""
        if not self.is_dead:
            self._local.set_modified(path, modified_ms)

    def remove(self, path: str) -> None:
        """Remove a file."""
        if not self.is_dead:
            self._local.remove(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory."""
        if not self.is_dead:
            self._local.remove_tree(path)


class EmbeddedFile:
    """An open file on such a disk."""

    __slots__ = ("_disk", "_file")

    def __init__(self, disk: EmbeddedDisk, file: LocalFile) -> None:
        self._disk = disk
        self._file = file

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._file.fileno()

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`."""
        return self._file.read_at(position, length)

    def write_at(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`."""
        if not self._disk.is_dead:
            self._disk.check_room()
            self._file.write_at(position, data)

    def truncate(self, size: int) -> None:
        """Cut or extend to `size` bytes."""
        if not self._disk.is_dead:
            self._file.truncate(size)

    def begin_write_out(self, position: int, length: int) -> None:
        """Return at once."""

    def write_out(self, position: int, length: int) -> None:
        """Return at once."""

    def sync(self) -> None:
        """Return at once, or raise the error of a full disk: it may surface only here."""
        self._disk.check_room()

    def size(self) -> int:
        """Return the size in bytes."""
        return self._file.size()

    def map(self) -> Buffer:
        """Map the file, read-only."""
        return self._file.map()
