"""A disk on which the process dies at a chosen step: kill -9 between any two changes of a file.

Nothing waits for the platters: what a killed process wrote is in the page cache and stays.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from storage.filesystem import READ_MODE, LocalFile, LocalFileSystem

if TYPE_CHECKING:
    from protocol.wire import Buffer


class KilledError(BaseException):
    """The process is gone; nothing after this may reach the disk."""


class MortalFileSystem(LocalFileSystem):
    """A real disk; each change is a step, and the process dies before the one after `steps`.

    What it dies in is half done where that can be: half a write, a file not yet renamed.
    """

    def __init__(self) -> None:
        self.steps: int | None = None
        """Number of changes still allowed; None for any number."""
        self.taken = 0

    @property
    def is_dying(self) -> bool:
        """Return whether the next step is not taken any more."""
        return self.steps == 0

    def step(self) -> None:
        """Take a step, or die."""
        if self.steps == 0:
            raise KilledError
        if self.steps is not None:
            self.steps -= 1
        self.taken += 1

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        """Open; to create is a step."""
        if create and not self.exists(path):
            self.step()
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return MortalFile(os.open(path, flags, READ_MODE), self)

    def replace(self, path: str, data: bytes, *, sync: bool, mode: int = READ_MODE) -> None:
        """Write beside and rename: dying leaves half of what is beside."""
        if self.is_dying:
            Path(f"{path}.99.tmp").write_bytes(data[: len(data) // 2])
        self.step()
        super().replace(path, data, sync=False, mode=mode)

    def make_directory(self, path: str) -> None:
        """A step."""
        self.step()
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        """A step."""
        self.step()
        super().rename(source, target)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """A step."""
        self.step()
        super().set_modified(path, modified_ms)

    def remove(self, path: str) -> None:
        """A step, if there is anything."""
        if self.exists(path):
            self.step()
            super().remove(path)

    def sync_directory(self, path: str) -> None:
        """Do nothing: there is nothing to wait for."""

    def remove_tree(self, path: str) -> None:
        """Remove the tree, in many steps."""
        if not self.exists(path):
            return
        for entry in sorted(self.scan(path)):
            below = f"{path}/{entry.name}"
            if entry.is_directory:
                self.remove_tree(below)
            else:
                self.remove(below)
        self.step()
        super().remove_tree(path)


class MortalFile(LocalFile):
    """A file of such a disk."""

    __slots__ = ("_filesystem",)

    def __init__(self, descriptor: int, filesystem: MortalFileSystem) -> None:
        super().__init__(descriptor)
        self._filesystem = filesystem

    def write_at(self, position: int, data: Buffer) -> None:
        """A step; dying leaves half of it."""
        if self._filesystem.is_dying:
            super().write_at(position, memoryview(data)[: len(data) // 2])
        self._filesystem.step()
        super().write_at(position, data)

    def begin_write_out(self, position: int, length: int) -> None:
        """Do nothing: there is nothing to begin."""

    def write_out(self, position: int, length: int) -> None:
        """Do nothing: there is nothing to wait for."""

    def sync(self) -> None:
        """Do nothing: there is nothing to wait for."""

    def truncate(self, size: int) -> None:
        """A step."""
        self._filesystem.step()
        super().truncate(size)
