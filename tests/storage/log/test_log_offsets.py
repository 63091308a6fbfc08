"""Movements of a log's offsets, and assertions against all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.errors import ApiError, ErrorCode
from storage.log.log_offsets import NEVER_CLEANED, LogOffsets

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def offsets() -> LogOffsets:
    return LogOffsets(10, 50, 30, 40, 20)


def shown(offsets: LogOffsets) -> tuple[int, ...]:
    """Log start, end, recovery point, high watermark, cleaned offset."""
    return (
        offsets.log_start_offset,
        offsets.log_end_offset,
        offsets.recovery_point,
        offsets.high_watermark,
        offsets.cleaned_offset,
    )


@pytest.mark.parametrize(("to", "is_moved", "then"), [(39, False, 40), (45, True, 45)])
def test_high_watermark_moves_forward_only(
    offsets: LogOffsets, to: int, is_moved: bool, then: int
) -> None:
    assert offsets.advance_high_watermark(to) is is_moved
    assert offsets.high_watermark == then


def test_high_watermark_ends_with_the_log(offsets: LogOffsets) -> None:
    assert offsets.advance_high_watermark(1000)
    assert not offsets.advance_high_watermark(1000)
    assert offsets.high_watermark == 50


def test_log_start_moves_up_to_the_high_watermark(offsets: LogOffsets) -> None:
    assert not offsets.may_start_at(10)
    assert offsets.may_start_at(40)
    with pytest.raises(ApiError) as refused:
        offsets.may_start_at(41)

    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    offsets.start_at(40)
    assert offsets.log_start_offset == 40


@pytest.mark.parametrize(
    ("to", "is_flushed", "then"),
    [
        (45, False, (10, 45, 30, 40, 20)),
        (30, False, (10, 30, 30, 30, 20)),
        (15, True, (10, 15, 15, 15, 15)),
        (5, True, (5, 5, 5, 5, 5)),
    ],
)
def test_truncation_lowers_the_offsets_above_it(
    offsets: LogOffsets, to: int, is_flushed: bool, then: tuple[int, ...]
) -> None:
    assert offsets.cut_to(to) is is_flushed
    assert shown(offsets) == then


@pytest.mark.parametrize(
    ("to", "is_flushed", "then"),
    [(100, False, (100, 100, 30, 100, 20)), (5, True, (5, 5, 5, 5, 5))],
)
def test_log_that_starts_over_is_empty_and_committed_there(
    offsets: LogOffsets, to: int, is_flushed: bool, then: tuple[int, ...]
) -> None:
    assert offsets.start_over_at(to) is is_flushed
    assert shown(offsets) == then


def test_a_flush_begun_before_a_truncation_does_not_raise_the_recovery_point(
    offsets: LogOffsets,
) -> None:
    before = offsets.truncations
    offsets.raise_recovery_point(45, before)
    offsets.raise_recovery_point(35, before)
    assert offsets.recovery_point == 45

    offsets.cut_to(32)
    offsets.raise_recovery_point(45, before)

    assert offsets.recovery_point == 32


def test_a_completed_wait_moves_the_recovery_point_to_the_log_end(offsets: LogOffsets) -> None:
    offsets.note_flushed()

    assert offsets.recovery_point == 50


def test_compaction_may_have_to_begin_again_earlier(offsets: LogOffsets) -> None:
    offsets.note_cleaned(25)
    offsets.note_cleaned(NEVER_CLEANED)

    assert offsets.cleaned_offset == NEVER_CLEANED


@pytest.mark.parametrize(
    "impossible",
    [
        (-1, 50, 30, 40),
        (41, 50, 30, 40),
        (10, 50, 30, 51),
        (10, 50, 51, 40),
        (10, 50, 30, 40, 51),
    ],
)
def test_impossible_log_offsets_are_an_assertion_error(impossible: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError):
        LogOffsets(*impossible)


@pytest.mark.parametrize(
    "move",
    [
        pytest.param(lambda offsets: offsets.start_at(41), id="start past the high watermark"),
        pytest.param(lambda offsets: offsets.start_at(9), id="start that moves back"),
        pytest.param(lambda offsets: offsets.cut_to(51), id="cut past the end"),
        pytest.param(
            lambda offsets: offsets.raise_recovery_point(51, 0), id="flushed past the end"
        ),
        pytest.param(lambda offsets: offsets.note_cleaned(51), id="cleaned past the end"),
    ],
)
def test_unjustified_offset_moves_are_an_assertion_error(
    offsets: LogOffsets, move: Callable[[LogOffsets], object]
) -> None:
    with pytest.raises(AssertionError):
        move(offsets)

    assert shown(offsets) == (10, 50, 30, 40, 20)
