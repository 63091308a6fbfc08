"""Indexes on disk beside the segments of a log that is in use: found, put in place, removed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from storage.errors import DamagedFileError
from storage.key_index.index_reader import IndexReader
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.log.log import Log
    from storage.segment.segment import Segment


def unfinished_path(directory: str, base_offset: int) -> str:
    """Path under which an index is written before it is put in place."""
    suffix = file_names.KEY_INDEX + file_names.TEMPORARY
    return file_names.segment_file(directory, base_offset, suffix)


def index_path(directory: str, base_offset: int) -> str:
    """Path of the index of a segment."""
    return file_names.segment_file(directory, base_offset, file_names.KEY_INDEX)


def put_in_place(log: Log, segment: Segment) -> None:
    """Rename the written index of a segment into place; it need not be on the disk yet."""
    base_offset = segment.base_offset
    log.directory.disk.filesystem.rename(
        unfinished_path(log.path, base_offset), index_path(log.path, base_offset)
    )


def sound_indexes(log: Log, segments: Iterable[Segment]) -> dict[int, Segment]:
    """Segments with an index of their own bytes, by base offset.

    Reads a few pages of each index, and may run on any thread. Raises OSError.
    """
    filesystem = log.directory.disk.filesystem
    names = {entry.name for entry in filesystem.scan(log.path)}
    sound = {}
    for segment in segments:
        path = index_path(log.path, segment.base_offset)
        if path.rpartition("/")[2] in names:
            with suppress(DamagedFileError, FileNotFoundError, PermissionError):
                file = filesystem.open(segment.path)
                reader = IndexReader(filesystem.open(path), path)
                reader.check(file, segment.base_offset, segment.size)
                sound[segment.base_offset] = segment
    return sound


def discard_indexes(log: Log) -> None:
    """Remove all indexes of a log. Raises OSError."""
    filesystem = log.directory.disk.filesystem
    for entry in filesystem.scan(log.path):
        parsed = file_names.parse_segment_file(entry.name.removesuffix(file_names.TEMPORARY))
        if parsed is not None and parsed[1] == file_names.KEY_INDEX:
            filesystem.remove(f"{log.path}/{entry.name}")
