"""End of a closed segment, found quickly at a start with thousands of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import DamagedFileError
from storage.segment import file_names
from storage.segment.batch_scan import walk_headers

if TYPE_CHECKING:
    from storage.filesystem import FileSystem
    from storage.segment.segment import Segment
    from storage.segment.segment_files import SegmentFiles


def end_if_whole(filesystem: FileSystem, segment: Segment, found: SegmentFiles) -> int | None:
    """Offset after the last batch, if the file ends with a whole one; else None.

    Nothing stays open or mapped, and two small reads are all: the last entry of the offset index,
    and the headers from there on.
    """
    size, position, offset = found.size, 0, segment.base_offset
    index_size = found.index_sizes.get(file_names.OFFSET_INDEX, 0)
    if index_size:
        index = segment.offset_index
        width = index.entry.size
        last = filesystem.open(index.path).read_at(index_size - width, width)
        position = index.entry.unpack(last)[1] if len(last) == width else -1
    if not 0 <= position <= size:
        return None
    if position < size:
        try:
            for at, header in walk_headers(filesystem.open(segment.path), position, size):
                position, offset = at + header.size_in_bytes, header.next_offset
        except DamagedFileError:
            return None
    return offset if position == size else None
