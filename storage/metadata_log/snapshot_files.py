"""Files of snapshots, by id: complete ones, one that is being written, and those that may go."""

from __future__ import annotations

import re
from bisect import insort
from typing import TYPE_CHECKING, Final

from protocol.metadata_log.snapshots import SnapshotContent, SnapshotId
from storage.segment import file_names

if TYPE_CHECKING:
    from protocol.wire import Buffer
    from storage.filesystem import File
    from storage.log.log_settings import LogPlace

SUFFIX: Final = ".checkpoint"
PARTIAL: Final = ".part"
BOOTSTRAP: Final = SnapshotId(0, 0)
"""Written by `kafka-storage format` on a controller: no state at an offset, so passed by."""

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint\Z")
_LEFT_OVER = re.compile(r"\d{20}-\d{10}(?:-\d+)?\.checkpoint\.(?:part|deleted)\Z")


def name_of(snapshot_id: SnapshotId) -> str:
    """Name of the file."""
    return f"{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}{SUFFIX}"


def parse_name(name: str) -> SnapshotId | None:
    """Id in a name, or None when it is no snapshot's."""
    match = _NAME.match(name)
    return SnapshotId(int(match[1]), int(match[2])) if match else None


class PartialSnapshot:
    """A snapshot that is being written. Its own user closes it: `finish` or `abandon`."""

    def __init__(self, place: LogPlace, snapshot_id: SnapshotId, number: int) -> None:
        """`number` tells it from others of this process with the same id."""
        self.snapshot_id = snapshot_id
        self._place = place
        self._final_path = f"{place.path}/{name_of(snapshot_id)}"
        stem = self._final_path.removesuffix(SUFFIX)
        self.path = f"{stem}-{number}{SUFFIX}{PARTIAL}"
        self.size = 0
        with place.directory:
            self._file: File = place.directory.disk.filesystem.open(self.path, create=True)

    def append(self, data: Buffer) -> None:
        """Write what comes next; raises LogDirectoryError."""
        with self._place.directory:
            self._file.write_at(self.size, data)
        self.size += len(data)

    def finish(self) -> None:
        """Put the file in place for good; waits for the disk, on any thread.

        Raises LogDirectoryError.
        """
        filesystem = self._place.directory.disk.filesystem
        with self._place.directory:
            self._file.sync()
            filesystem.rename(self.path, self._final_path)
            filesystem.sync_directory(self._place.path)

    def abandon(self) -> None:
        """Remove the file; raises LogDirectoryError."""
        with self._place.directory:
            self._place.directory.disk.filesystem.remove(self.path)


class SnapshotFiles:
    """The snapshots in one directory. Every method may raise LogDirectoryError."""

    def __init__(self, place: LogPlace) -> None:
        """Look at the directory, and remove what an earlier process has left half done."""
        self._place = place
        self._begun = 0
        self._timestamps: dict[SnapshotId, int] = {}
        self._sizes: dict[SnapshotId, int] = {}
        filesystem = place.directory.disk.filesystem
        with place.directory:
            for entry in filesystem.scan(place.path):
                snapshot_id = parse_name(entry.name)
                if _LEFT_OVER.match(entry.name):
                    filesystem.remove(f"{place.path}/{entry.name}")
                elif snapshot_id is not None and snapshot_id != BOOTSTRAP:
                    self._sizes[snapshot_id] = entry.size
        self.ids = sorted(self._sizes)
        """Ids of complete snapshots, oldest first."""

    @property
    def newest(self) -> SnapshotId | None:
        """The one to begin with, if there is any."""
        return self.ids[-1] if self.ids else None

    @property
    def size_in_bytes(self) -> int:
        """Size of all complete ones."""
        return sum(self._sizes.values())

    def path(self, snapshot_id: SnapshotId) -> str:
        """Path of the file of a complete one."""
        return f"{self._place.path}/{name_of(snapshot_id)}"

    def read(self, snapshot_id: SnapshotId) -> bytes:
        """The whole file."""
        with self._place.directory:
            return self._place.directory.disk.filesystem.read(self.path(snapshot_id))

    def timestamp_ms(self, snapshot_id: SnapshotId) -> int:
        """Time of the append of the last record in it; raises UnreadableMetadataError."""
        if snapshot_id not in self._timestamps:
            content = SnapshotContent(self.read(snapshot_id))
            content.read_header()
            self._timestamps[snapshot_id] = content.last_contained_timestamp_ms
        return self._timestamps[snapshot_id]

    def begin(self, snapshot_id: SnapshotId) -> PartialSnapshot:
        """Begin a file."""
        self._begun += 1
        return PartialSnapshot(self._place, snapshot_id, self._begun)

    def adopt(self, finished: PartialSnapshot) -> None:
        """Count one as complete, which it is on the disk."""
        if finished.snapshot_id not in self._sizes:
            insort(self.ids, finished.snapshot_id)
        self._sizes[finished.snapshot_id] = finished.size

    def take_before(self, snapshot_id: SnapshotId) -> list[str]:
        """Drop those older than this one; returns files to remove later, renamed by then."""
        return self._take([one for one in self.ids if one < snapshot_id])

    def take_before_offset(self, offset: int) -> list[str]:
        """Do the same with those that end before an offset."""
        return self._take([one for one in self.ids if one.end_offset < offset])

    def _take(self, snapshot_ids: list[SnapshotId]) -> list[str]:
        filesystem = self._place.directory.disk.filesystem
        taken = []
        with self._place.directory:
            for snapshot_id in snapshot_ids:
                path = self.path(snapshot_id)
                filesystem.rename(path, f"{path}{file_names.DELETED}")
                taken.append(f"{path}{file_names.DELETED}")
                self.ids.remove(snapshot_id)
                self._sizes.pop(snapshot_id)
                self._timestamps.pop(snapshot_id, None)
        return taken
