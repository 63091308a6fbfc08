"""Neighbouring segments become one as far as sizes, indexes and offsets allow."""

from __future__ import annotations

from storage.compaction.job import SegmentLimits, SourceSegment
from storage.compaction.segment_groups import LONGEST_GROUP, group_segments
from storage.segment.batch_scan import MAX_RELATIVE_OFFSET

LIMITS = SegmentLimits(segment_bytes=100, index_bytes=80, index_interval_bytes=10)


def segment(base_offset: int, size: int = 10, index: int = 8, times: int = 12) -> SourceSegment:
    return SourceSegment(base_offset, size, index, times, 0)


def groups(*segments: SourceSegment, end: int = 10_000) -> list[list[int]]:
    return [[one.base_offset for one in group] for group in group_segments(segments, end, LIMITS)]


def test_sizes_add_up_to_that_of_one_segment_at_most() -> None:
    assert groups(segment(0, 40), segment(10, 60), segment(20, 1)) == [[0, 10], [20]]
    assert groups(segment(0, 40), segment(10, 61), segment(20, 39)) == [[0], [10, 20]]


def test_a_segment_larger_than_allowed_stands_alone() -> None:
    assert groups(segment(0, 500), segment(10, 1)) == [[0], [10]]


def test_indexes_add_up_to_their_limit_at_most() -> None:
    assert groups(segment(0, index=40), segment(10, index=41)) == [[0], [10]]
    assert groups(segment(0, times=40), segment(10, times=41)) == [[0], [10]]
    assert groups(segment(0, times=40, index=40), segment(10, times=40, index=40)) == [[0, 10]]


def test_offsets_must_fit_relative_to_the_first() -> None:
    far = MAX_RELATIVE_OFFSET
    assert groups(segment(0), segment(10), end=far + 1) == [[0, 10]]
    assert groups(segment(0), segment(10), end=far + 2) == [[0], [10]]
    assert groups(segment(0), segment(10, size=0), end=far + 2) == [[0, 10]]
    assert groups(segment(0), segment(10), segment(far + 2), end=far + 9) == [[0], [10, far + 2]]


def test_a_group_is_not_longer_than_can_be_renamed_at_once() -> None:
    found = groups(*[segment(index, 0, 0, 0) for index in range(300)])

    rest = 300 - 2 * LONGEST_GROUP
    assert [len(group) for group in found] == [LONGEST_GROUP, LONGEST_GROUP, rest]


def test_no_segments_make_no_group() -> None:
    assert groups() == []
