"""Grouping of neighbouring segments into one: compaction leaves many small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.segment.batch_scan import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.compaction.job import SegmentLimits, SourceSegment

LONGEST_GROUP: Final = 128
"""The files of a group are renamed in one go on the event loop, which this keeps short."""


def group_segments(
    segments: Sequence[SourceSegment], end_offset: int, limits: SegmentLimits
) -> list[list[SourceSegment]]:
    """Runs of `segments` that fit into one by size, by the sizes of both indexes and by offsets.

    `end_offset` is where the last ends. A group has one segment at least, whatever its size.
    """
    if not segments:
        return []
    ends = [*(segment.base_offset for segment in segments[1:]), end_offset]
    groups: list[list[SourceSegment]] = []
    room = _Room(limits)
    for segment, end in zip(segments, ends, strict=True):
        if groups and len(groups[-1]) < LONGEST_GROUP and room.takes(groups[-1][0], segment, end):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            room = _Room(limits)
        room.use(segment)
    return groups


class _Room:
    """Room left in one group."""

    def __init__(self, limits: SegmentLimits) -> None:
        self._size = limits.segment_bytes
        self._offset_index = self._time_index = limits.index_bytes

    def takes(self, first: SourceSegment, segment: SourceSegment, end: int) -> bool:
        # An empty segment takes no offsets, so it may join however far it reaches.
        return (
            segment.size <= self._size
            and segment.offset_index_size <= self._offset_index
            and segment.time_index_size <= self._time_index
            and (segment.size == 0 or end - 1 - first.base_offset <= MAX_RELATIVE_OFFSET)
        )

    def use(self, segment: SourceSegment) -> None:
        self._size -= segment.size
        self._offset_index -= segment.offset_index_size
        self._time_index -= segment.time_index_size
