"""Segments to index and to search, in a directory of the test's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from storage.filesystem import LocalFileSystem
from storage.key_index.index_builder import IndexSource, build_index
from storage.key_index.placement import index_path, put_in_place, unfinished_path
from storage.key_index.segment_search import SegmentSearch, Stretch
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from storage.key_index.query import Query
    from storage.log.log import Log

DISK = LocalFileSystem()


def nothing(_count: int) -> None:
    """Do not throttle."""


@dataclass
class Searched:
    """Result of a search."""

    offsets: list[int]
    damage: str | None
    has_index: bool
    bytes_read: int


class OneSegment:
    """A closed segment at some offset, and its index."""

    def __init__(self, directory: Path, base_offset: int = 0) -> None:
        self.directory = str(directory)
        self.base_offset = base_offset
        self.path = file_names.segment_file(self.directory, base_offset, file_names.LOG)
        self.index_path = index_path(self.directory, base_offset)
        self.next_offset = base_offset
        self.data = bytearray()
        self.write()

    def append(self, records: Sequence[NewRecord], codec: Codec = Codec.NONE) -> None:
        """Add a batch."""
        batch = build_batch(records, base_offset=self.next_offset, codec=codec)
        self.add(batch, len(records))

    def add(self, batch: bytes | bytearray, count: int) -> None:
        """Add a batch of so many offsets."""
        self.data += batch
        self.next_offset += count

    def fill(self, batches: Iterable[Sequence[NewRecord]]) -> None:
        """Add batches and write them."""
        for records in batches:
            self.append(records)
        self.write()

    def write(self) -> None:
        """Write all batches to the file."""
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(self.data)

    def build(self) -> tuple[int, int]:
        """Index it; returns bytes and entries."""
        target = DISK.open(self.index_path, create=True)
        target.truncate(0)
        source = IndexSource(DISK.open(self.path), self.path, self.base_offset, len(self.data))
        return build_index(source, target, nothing)

    def search(self, query: Query, *, is_closed: bool = True) -> Searched:
        """Offsets of what is found."""
        read = [0]

        def note(count: int, _next_offset: int) -> None:
            read[0] += count

        place = Stretch(self.directory, self.base_offset, len(self.data), is_closed)
        search = SegmentSearch(DISK, place, note)
        assert search.is_current()
        found = [one.record.offset for one in search.run(query, (0, 1 << 62))]
        return Searched(found, search.damage, search.has_index, read[0])


def index_closed_segments(log: Log) -> None:
    """Index all segments of a log but the active one, as the broker does."""
    for segment in list(log.segments)[:-1]:
        log_file = DISK.open(segment.path)
        source = IndexSource(log_file, segment.path, segment.base_offset, segment.size)
        target = DISK.open(unfinished_path(log.path, segment.base_offset), create=True)
        build_index(source, target, nothing)
        put_in_place(log, segment)
