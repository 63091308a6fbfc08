"""The producer snapshots beside a log: one per segment and one for the end of a closed log.

The number in a file's name is the log end offset at which it was taken. A snapshot newer than the
log must never be used, so truncation removes those past the new end.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from contextlib import suppress
from typing import TYPE_CHECKING

from storage.producer.producer_snapshot import SnapshotEntry, decode, encode
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.filesystem import FileSystem


class Snapshots:
    """Offsets of the snapshots, and methods to write, read and remove them."""

    __slots__ = ("_directory", "_filesystem", "offsets")

    def __init__(self, filesystem: FileSystem, directory: str, offsets: Iterable[int]) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self.offsets = sorted(offsets)

    def relocate(self, directory: str) -> None:
        """The files are in another directory now."""
        self._directory = directory

    def write(self, offset: int, entries: list[SnapshotEntry]) -> None:
        """Write the snapshot for `offset`, unless it is there."""
        assert not self.offsets or offset >= self.offsets[-1], (self.path(offset), self.offsets[-1])
        if offset not in self.offsets:
            self._filesystem.replace(self.path(offset), encode(entries), sync=False)
            insort(self.offsets, offset)

    def read(self, offset: int) -> list[SnapshotEntry]:
        """Entries of the snapshot for `offset`; DamagedFileError when it is not sound."""
        return decode(self._filesystem.read(self.path(offset)))

    def latest(self, offset: int) -> int | None:
        """Newest snapshot that is not past `offset`."""
        slot = bisect_right(self.offsets, offset)
        return self.offsets[slot - 1] if slot else None

    def remove(self, offset: int) -> None:
        """Remove one, if it is there."""
        if offset in self.offsets:
            self.offsets.remove(offset)
            self._filesystem.remove(self.path(offset))

    def remove_after(self, offset: int) -> None:
        """Remove those past `offset`."""
        for stale in self.offsets[bisect_right(self.offsets, offset) :]:
            self.remove(stale)

    def remove_up_to(self, offset: int) -> None:
        """Remove those at or before `offset`."""
        for stale in self.offsets[: bisect_right(self.offsets, offset)]:
            self.remove(stale)

    def remove_strays(self, base_offsets: list[int]) -> None:
        """Keep those at the beginning of a segment, and the newest."""
        kept = {*base_offsets, *self.offsets[-1:]}
        for offset in [offset for offset in self.offsets if offset not in kept]:
            self.remove(offset)

    def sync(self, offset: int) -> None:
        """Wait until the snapshot for `offset` is on the disk; safe from another thread."""
        with suppress(FileNotFoundError):
            self._filesystem.open(self.path(offset)).sync()

    def path(self, offset: int) -> str:
        """Path of the snapshot for `offset`, which may not exist."""
        return file_names.segment_file(self._directory, offset, file_names.SNAPSHOT)
