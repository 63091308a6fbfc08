"""The port through which all file work goes, and the adapter for the real disk.

A simulated disk implements the same two protocols, so that crashes, torn writes and full disks can
be played without one. Failures are `OSError`, as the operating system reports them.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import itertools
import mmap
import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from storage import linux_aio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.wire import Buffer

READ_MODE = 0o644

WRITE = 0b010
WRITE_AND_WAIT = 0b111
"""All three flags of Linux's sync_file_range: wait for writes under way, write, wait."""
NOT_TO_BE_HAD = (errno.ENOSYS, errno.EPERM)
"""Errors of containers and other kernels for system calls they block or do not implement."""

_replacements = itertools.count()
_sync_file_range = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
if _sync_file_range is not None:
    _sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


LEADS_NOWHERE: Final = frozenset({errno.ENOENT, errno.ELOOP})
"""Errors of following a symbolic link without a target."""


class Stamp(NamedTuple):
    """Identity of a file or directory that changes when it is written, or names in it change."""

    inode: int
    changed_ns: int
    """Kept by the system: it cannot be set back, unlike the time of modification."""
    size: int
    modified_ms: int


class Entry(NamedTuple):
    """One name in a directory."""

    name: str
    is_directory: bool
    stamp: Stamp
    is_dangling: bool = False
    """A symbolic link that leads nowhere; the stamp is its own."""

    @property
    def size(self) -> int:
        """Bytes in a file."""
        return self.stamp.size

    @property
    def modified_ms(self) -> int:
        """Modification time of its content, as far as the system knows."""
        return self.stamp.modified_ms


class Space(NamedTuple):
    """Room on the volume of a directory, in bytes."""

    total: int
    usable: int


class File(Protocol):
    """An open file. It closes itself when the last reference to it goes."""

    def fileno(self) -> int:
        """Return the descriptor, for `sendfile`."""

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer at the end of the file."""

    def write_at(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`, or raise; a failed write leaves undefined content."""

    def truncate(self, size: int) -> None:
        """Cut to, or extend with zeros to, `size` bytes."""

    def begin_write_out(self, position: int, length: int) -> None:
        """Have the disk begin to write out this range, where that is supported."""

    def write_out(self, position: int, length: int) -> None:
        """Have the disk write out this range, and wait; only `sync` makes it durable."""

    def sync(self) -> None:
        """Return when everything written so far is on the disk."""

    def size(self) -> int:
        """Return the size in bytes."""

    def map(self) -> Buffer:
        """Return the whole file as read-only memory that later writes show through."""


class FileSystem(Protocol):
    """Directories and files by path."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing."""

    def scan(self, path: str) -> list[Entry]:
        """Entries of a directory, in no order."""

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, in no order."""

    def stamp(self, path: str) -> Stamp | None:
        """Return that of a file or directory; None when there is none."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""

    def read(self, path: str) -> bytes:
        """Return a whole file."""

    def replace(self, path: str, data: bytes, *, sync: bool, mode: int = READ_MODE) -> None:
        """Put a whole file in place at once: a reader or a crash sees the old or the new one.

        `mode` says who may read it, from its first byte on.
        """

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; it may exist."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory."""

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Say that a file was last changed at `modified_ms`."""

    def remove(self, path: str) -> None:
        """Remove a file; it may be gone already."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all it holds; it may be gone already."""

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory are on the disk."""

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        """Return when everything written to `files` so far is on the disk, or what came of each."""

    @property
    def syncs_together(self) -> bool:
        """True if waiting for many files takes hardly longer than for one."""

    def sync_all(self) -> None:
        """Return when everything written by anyone is on the disk."""

    def lock(self, path: str) -> File | None:
        """Lock a file for as long as the result lives; None when another process holds it."""

    def space(self, path: str) -> Space:
        """Return the room on the volume of a directory."""


def sync_all_of(filesystem: FileSystem, files: Sequence[File]) -> None:
    """Return when all files are on the disk; raises the first error."""
    for error in filesystem.sync_files(files):
        if error is not None:
            raise error


def sync_each(files: Sequence[File]) -> list[OSError | None]:
    """`FileSystem.sync_files`, one after the other."""
    outcomes: list[OSError | None] = []
    for file in files:
        try:
            file.sync()
        except OSError as error:
            outcomes.append(error)
        else:
            outcomes.append(None)
    return outcomes


class LocalFile:
    """An open file of the operating system."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        # A region handed to a connection keeps its file open past eviction, truncation and
        # deletion; the last holder closes it. At interpreter exit `os` may be gone.
        with suppress(OSError, TypeError, AttributeError):
            os.close(self._descriptor)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`."""
        return os.pread(self._descriptor, length, position)

    def write_at(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`."""
        written = os.pwrite(self._descriptor, data, position)
        if written != len(data):
            self._write_rest(position, memoryview(data), written)

    def _write_rest(self, position: int, data: memoryview, written: int) -> None:
        while written < len(data):  # a full disk turns into ENOSPC on the next try
            written += os.pwrite(self._descriptor, data[written:], position + written)

    def truncate(self, size: int) -> None:
        """Cut or extend to `size` bytes."""
        os.ftruncate(self._descriptor, size)

    def begin_write_out(self, position: int, length: int) -> None:
        """Have data written out; what goes wrong with that, `write_out` and `sync` say."""
        if _sync_file_range is not None:
            _sync_file_range(self._descriptor, position, length, WRITE)

    def write_out(self, position: int, length: int) -> None:
        """Write data out without the file system's journal, which all that write would wait for."""
        number = errno.ENOSYS
        if _sync_file_range is not None:
            if _sync_file_range(self._descriptor, position, length, WRITE_AND_WAIT) == 0:
                return
            number = ctypes.get_errno()
        if number not in NOT_TO_BE_HAD:
            raise OSError(number, os.strerror(number))
        os.fdatasync(self._descriptor)

    def sync(self) -> None:
        """Wait for the disk."""
        os.fdatasync(self._descriptor)

    def size(self) -> int:
        """Return the size in bytes."""
        return os.fstat(self._descriptor).st_size

    def map(self) -> Buffer:
        """Map the file, read-only."""
        if sys.version_info >= (3, 13):
            mapped = mmap.mmap(self._descriptor, 0, prot=mmap.PROT_READ, trackfd=False)
        else:
            mapped = mmap.mmap(self._descriptor, 0, prot=mmap.PROT_READ)
        return memoryview(mapped)


class LocalFileSystem:
    """The file system of the operating system."""

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        """Open for reading and writing."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return LocalFile(os.open(path, flags, READ_MODE))

    def scan(self, path: str) -> list[Entry]:
        """Entries of a directory."""
        entries = []
        with os.scandir(path) as found:
            for entry in found:
                try:
                    stamp = _stamp_of(entry.stat(follow_symlinks=True))
                except OSError as error:
                    if error.errno not in LEADS_NOWHERE or not entry.is_symlink():
                        raise
                    own = _stamp_of(entry.stat(follow_symlinks=False))
                    entries.append(
                        Entry(entry.name, is_directory=False, stamp=own, is_dangling=True)
                    )
                else:
                    entries.append(Entry(entry.name, entry.is_dir(), stamp))
        return entries

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""
        return os.listdir(path)  # noqa: PTH208

    def stamp(self, path: str) -> Stamp | None:
        """Inode and times of a file."""
        try:
            return _stamp_of(os.stat(path))  # noqa: PTH116
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        return os.path.exists(path)  # noqa: PTH110 - paths are strings here, for speed and size

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        finally:
            os.close(descriptor)

    def replace(self, path: str, data: bytes, *, sync: bool, mode: int = READ_MODE) -> None:
        """Write beside, then rename over."""
        # A name of its own: two threads may replace the same file, and the last one wins.
        beside = f"{path}.{next(_replacements)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        # Opened first: should descriptors run out, the old file is still there.
        directory = self._open_directory(os.path.dirname(path)) if sync else None  # noqa: PTH120
        if mode != READ_MODE:
            self.remove(beside)  # one that a crash left need not be writable
        file = LocalFile(os.open(beside, flags, mode))
        file.write_at(0, data)
        if sync:
            file.sync()
        os.rename(beside, path)  # noqa: PTH104
        if directory is not None:
            os.fsync(directory.fileno())

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        os.makedirs(path, exist_ok=True)  # noqa: PTH103

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory."""
        os.rename(source, target)  # noqa: PTH104

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the time of the last change, and that of the last access too."""
        modified_ns = modified_ms * 1_000_000
        os.utime(path, ns=(modified_ns, modified_ns))

    def remove(self, path: str) -> None:
        """Remove a file if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108

    def remove_tree(self, path: str) -> None:
        """Remove a directory if it is there."""
        with suppress(FileNotFoundError):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        """Wait until the names are on the disk."""
        directory = self._open_directory(path)
        os.fsync(directory.fileno())

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        """Wait for the disk for all of them at once."""
        if any(type(file) is not LocalFile for file in files):  # one whose `sync` is another
            return sync_each(files)
        numbers = linux_aio.sync_together([file.fileno() for file in files])
        return [OSError(each, os.strerror(each)) if each else None for each in numbers]

    @property
    def syncs_together(self) -> bool:
        """True if the system has asynchronous I/O."""
        return linux_aio.is_available()

    def sync_all(self) -> None:
        """Wait for all disks."""
        os.sync()

    def lock(self, path: str) -> LocalFile | None:
        """Take the lock, or return None."""
        file = self.open(path, create=True)
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        return file

    def _open_directory(self, path: str) -> LocalFile:
        return LocalFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def space(self, path: str) -> Space:
        """Return the room on the volume."""
        status = os.statvfs(path)
        return Space(status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize)


def _stamp_of(status: os.stat_result) -> Stamp:
    modified_ms = status.st_mtime_ns // 1_000_000
    return Stamp(status.st_ino, status.st_ctime_ns, status.st_size, modified_ms)
