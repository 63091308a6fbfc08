"""Rebuild of a damaged `.delays` from the headers of its segment, in steps, in a new file.

    rebuild = log.delays.rebuild(base_offset)
    while not rebuild.is_over:
        for _ in rebuild.steps(): ...       other work runs between two of them
        rebuild.sync()                      on a thread
        for _ in rebuild.steps(): ...       records appended meanwhile
        rebuild.put_in_place()              right after the last step
    rebuild.sync()                          on a thread
    rebuild.close()                         in any case

The entries are written to a file of their own, which replaces the old one in one step: readers see
the old entries or the new ones. It is on the disk by then, because the start after a power failure
trusts everything before the recovery point. A crash before that leaves a file that ends in `.tmp`,
which the next start removes.

Between two steps the log may grow, be cut, or lose the segment to retention, compaction or its
deletion. After a truncation, or with another segment in its place, the rebuild stops: damage that
remains is found again.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from protocol.records.batch import DELAY_BIT
from storage.delays.delay_index import ENTRY, DelayIndex, packed_entry
from storage.errors import DamagedFileError
from storage.segment import file_names
from storage.segment.batch_scan import CHUNK_BYTES, walk_headers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from protocol.records.batch import BatchHeader
    from storage.filesystem import FileSystem
    from storage.log.log_contents import LogContents
    from storage.segment.segment import Segment

HEADERS_AT_A_TIME: Final = 256
"""Looked at in one step: less than a millisecond."""
_numbers = itertools.count()


class DelayRebuild:
    """Rebuild of one segment's delay index. Errors are raised as by the log."""

    def __init__(self, contents: LogContents, base_offset: int) -> None:
        """Begin; the segment is that in which `base_offset` lies."""
        self._files = contents.files
        self._offsets = contents.offsets
        segments = self._files.segments
        self._segment = segments[segments.floor(base_offset)]
        with self._files.place.directory:
            filesystem = self._files.place.directory.disk.filesystem
            index = self._segment.delays
            self._new = None if index is None else _NewFile(self._segment, index, filesystem)

    @property
    def is_over(self) -> bool:
        """True if the index is rebuilt, or has become obsolete."""
        segments = self._files.segments
        is_there = segments[segments.floor(self._segment.base_offset)] is self._segment
        return self._new is None or not self._new.is_awaited or not is_there

    def steps(self) -> Iterator[None]:
        """Go on to the end of the segment. Raises DamagedFileError if that cannot be walked."""
        steps = None if self._new is None else self._new.steps()
        while steps is not None:
            with self._files.place.directory:
                if self.is_over or next(steps, self) is self:
                    return
            yield

    def sync(self) -> None:
        """Sync the written file and its name to the disk; blocks the calling thread."""
        if self._new is not None:
            with self._files.place.directory:
                self._new.sync()
            self._files.sync_names()

    def put_in_place(self) -> None:
        """Do so, unless a flush has ended meanwhile that covers more than `sync` did.

        Raises DamagedFileError if the index is the same: then the log itself is damaged.
        """
        new = self._new
        if new is None or self.is_over:
            return
        with self._files.place.directory:
            if new.first_unsynced is None or new.first_unsynced >= self._offsets.recovery_point:
                new.put_in_place()

    def close(self) -> None:
        """Remove an unfinished file. If that fails, the next start removes it."""
        if self._new is not None:
            self._new.close()


def rebuild_at_once(segment: Segment, index: DelayIndex, filesystem: FileSystem) -> bool:
    """Rebuild an index during start-up; return whether the new one differs.

    Raises DamagedFileError, and changes nothing, if the segment cannot be walked.
    """
    new = _NewFile(segment, index, filesystem)
    try:
        for _ in new.steps():
            pass
        if new.is_same:
            return False
        new.sync()
        new.put_in_place()
    finally:
        new.close()
    return True


class _NewFile:
    """The file that is being written."""

    def __init__(self, segment: Segment, index: DelayIndex, filesystem: FileSystem) -> None:
        self._segment = segment
        self._index = index
        self._filesystem = filesystem
        self._changes = index.changes
        # A name of its own: an abandoned rebuild may still be about to remove its file.
        self._path = f"{index.path}.{next(_numbers)}{file_names.TEMPORARY}"
        self._file = filesystem.open(self._path, create=True)
        self._position = 0
        self._next_offset = segment.base_offset
        self._count = 0
        self._holds_same = True
        self.first_unsynced: int | None = None
        """Offset of the first batch whose entry may not be on the disk."""

    @property
    def is_awaited(self) -> bool:
        """True if the index is unchanged since the start of this, but for appends."""
        return self._segment.delays is self._index and self._index.changes == self._changes

    @property
    def is_same(self) -> bool:
        """The index says the same."""
        return self._holds_same and self._count == len(self._index) and not self._index.is_void

    def steps(self) -> Iterator[None]:
        """Take in what follows, up to where the segment ends by then."""
        segment = self._segment
        while self._position < segment.size:
            began_at = self._position
            headers = walk_headers(segment.file, began_at, segment.size, CHUNK_BYTES)
            while piece := list(itertools.islice(headers, HEADERS_AT_A_TIME)):
                self._take_in(piece)
                if self._position < segment.size:
                    yield
            if self._position == began_at:
                self._refuse(f"no record batch at byte {began_at}")

    def sync(self) -> None:
        """Wait for the disk; on any thread, while nothing is taken in."""
        self._file.sync()
        self.first_unsynced = None

    def put_in_place(self) -> None:
        if self.is_same:
            self._refuse("it is the log that is damaged, its delay index says what it does")
        self._index.replace(self._path, self._count)

    def close(self) -> None:
        with suppress(OSError):
            self._filesystem.remove(self._path)

    def _take_in(self, headers: Sequence[tuple[int, BatchHeader]]) -> None:
        data = b""
        for position, header in headers:
            if header.base_offset < self._next_offset:
                self._refuse(f"offset {header.base_offset} at byte {position} comes too late")
            self._next_offset = header.next_offset
            if header.attributes & DELAY_BIT:
                data += packed_entry(header, position)
                if self.first_unsynced is None:
                    self.first_unsynced = header.base_offset
        if data:
            self._holds_same = self._holds_same and self._index.holds(self._count, data)
            self._file.write_at(self._count * ENTRY.size, data)
            self._count += len(data) // ENTRY.size
        position, last = headers[-1]
        self._position = position + last.size_in_bytes
        if self._position > self._segment.size:
            self._refuse(f"the batch at byte {position} is cut off")

    def _refuse(self, text: str) -> None:
        raise DamagedFileError(f"{self._segment.path}: {text}")
