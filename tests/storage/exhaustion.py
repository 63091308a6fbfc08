"""A disk that is sound, on a machine that runs out of file descriptors at a chosen moment."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from storage.filesystem import READ_MODE, LocalFile, LocalFileSystem

if TYPE_CHECKING:
    from protocol.wire import Buffer
    from storage.filesystem import Entry


class ExhaustedFileSystem(LocalFileSystem):
    """A real disk; the opening after `left` more ones fails, and as many as `failures` in all."""

    def __init__(self, number: int = errno.EMFILE) -> None:
        self.left: int | None = None
        """Number of openings until one fails; None for any number."""
        self.failures = 0
        """Number of openings that fail then."""
        self.opened = 0
        self._number = number

    def run_out(self, left: int, failures: int = 1) -> None:
        """Make descriptors run out after so many openings."""
        self.left, self.failures = left, failures

    def recover(self) -> bool:
        """Provide descriptors again; return whether any was missed."""
        was_missed = self.left is None or self.left < 0
        self.left = None
        return was_missed

    def take(self) -> None:
        """Take a descriptor."""
        self.opened += 1
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0 and self.failures:
            self.failures -= 1
            raise OSError(self._number, os.strerror(self._number))

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        self.take()
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return ExhaustedFile(os.open(path, flags, READ_MODE), self)

    def scan(self, path: str) -> list[Entry]:
        self.take()
        return super().scan(path)

    def names(self, path: str) -> list[str]:
        self.take()
        return super().names(path)

    def read(self, path: str) -> bytes:
        self.take()
        return super().read(path)

    def replace(self, path: str, data: bytes, *, sync: bool, mode: int = READ_MODE) -> None:
        self.take()
        super().replace(path, data, sync=False, mode=mode)

    def remove_tree(self, path: str) -> None:
        self.take()
        super().remove_tree(path)

    def sync_directory(self, path: str) -> None:
        self.take()


class ExhaustedFile(LocalFile):
    """A file of such a disk: a mapping takes a descriptor too."""

    __slots__ = ("_filesystem",)

    def __init__(self, descriptor: int, filesystem: ExhaustedFileSystem) -> None:
        super().__init__(descriptor)
        self._filesystem = filesystem

    def map(self) -> Buffer:
        self._filesystem.take()
        return super().map()

    def sync(self) -> None:
        """Do nothing: there is nothing to wait for."""
