"""The file operations of the embedded store: the port, and its adapter to a directory."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class StoreFiles(Protocol):
    """A directory with crash-safe replacement. All writes are durable when they return."""

    def read(self, name: str) -> bytes | None:
        """Return the whole file, None if it does not exist."""

    def write_at(self, name: str, position: int, data: bytes) -> None:
        """Write into an existing file and sync it."""

    def replace(self, name: str, data: bytes) -> None:
        """Replace a file as a whole: after a crash one or the other is there.

        After an error, too, either may be there.
        """

    def truncate(self, name: str, size: int) -> None:
        """Cut a file and sync it."""

    def close(self) -> None:
        """Close the open files."""


class LocalStoreFiles:
    """`StoreFiles` in a directory of the machine."""

    def __init__(self, directory: str | Path) -> None:
        """Use a directory that exists."""
        self._directory = Path(directory)
        self._open: dict[str, int] = {}
        self._one_at_a_time = threading.Lock()
        """Held during a write: a descriptor closed within it may be another file's by the next
        byte."""

    def read(self, name: str) -> bytes | None:
        """Return the whole file, None if it does not exist."""
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            return None

    def write_at(self, name: str, position: int, data: bytes) -> None:
        """Write all of `data` at `position` and sync the file."""
        with self._one_at_a_time:
            descriptor = self._descriptor(name)
            view = memoryview(data)
            while view:
                written = os.pwrite(descriptor, view, position)
                view = view[written:]
                position += written
            os.fdatasync(descriptor)

    def replace(self, name: str, data: bytes) -> None:
        """Write a temporary file, sync it, move it over the old one, sync the directory."""
        with self._one_at_a_time, self._opened_directory() as directory:
            temporary = self._directory / f"{name}.tmp"
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._release(name)
            temporary.replace(self._directory / name)
            os.fsync(directory)

    def truncate(self, name: str, size: int) -> None:
        """Cut the file to `size` bytes and sync it."""
        with self._one_at_a_time:
            descriptor = self._descriptor(name)
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)

    def close(self) -> None:
        """Close the open files, once a write on another thread has ended."""
        with self._one_at_a_time:
            for name in list(self._open):
                self._release(name)

    def _descriptor(self, name: str) -> int:
        if name not in self._open:
            self._open[name] = os.open(self._directory / name, os.O_RDWR | os.O_CLOEXEC)
        return self._open[name]

    def _release(self, name: str) -> None:
        descriptor = self._open.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    @contextmanager
    def _opened_directory(self) -> Iterator[int]:
        # Opened before anything is changed, as descriptors may run out.
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
