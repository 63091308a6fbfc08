"""Changes laid over stored ranges, beside the same done record by record."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator.share_state.batches import combined
from coordinator.share_state.state import NO_START_OFFSET, DeliveryState, StateBatch

LAST = 40

batches = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, LAST),
    st.integers(0, 8),
    st.sampled_from([int(each) for each in DeliveryState]),
    st.integers(1, 3),
)


def record_by_record(
    given_batches: list[StateBatch], start_offset: int
) -> dict[int, tuple[int, int]]:
    """The delivery count and state of each record."""
    states: dict[int, tuple[int, int]] = {}
    for first, last, state, count in given_batches:
        for offset in range(max(first, start_offset), last + 1):
            states[offset] = max(states.get(offset, (0, 0)), (count, state))
    return states


def spread(ranges: tuple[StateBatch, ...]) -> dict[int, tuple[int, int]]:
    return {
        offset: (count, state)
        for first, last, state, count in ranges
        for offset in range(first, last + 1)
    }


@given(
    st.lists(st.lists(batches, max_size=5), min_size=1, max_size=5),
    st.lists(st.integers(NO_START_OFFSET, LAST), min_size=5, max_size=5),
)
def test_changes_in_ranges_are_those_record_by_record(
    changes: list[list[StateBatch]], starts: list[int]
) -> None:
    stored: tuple[StateBatch, ...] = ()
    start = NO_START_OFFSET
    seen: list[StateBatch] = []
    for change, next_start in zip(changes, starts, strict=False):
        start = max(start, next_start)
        seen += change
        stored = combined(stored, change, start)

    assert spread(stored) == record_by_record(seen, start)
    for before, after in pairwise(stored):
        assert before.last_offset < after.first_offset
        is_one = before.last_offset + 1 == after.first_offset and before[2:] == after[2:]
        assert not is_one, "neighbours in one state are one range"


@given(st.lists(batches, max_size=6), st.lists(batches, max_size=6))
def test_changes_may_come_twice_and_in_any_order(
    first: list[StateBatch], second: list[StateBatch]
) -> None:
    once = combined(combined((), first, NO_START_OFFSET), second, NO_START_OFFSET)
    other = combined(combined((), second, NO_START_OFFSET), first, NO_START_OFFSET)
    assert once == other == combined(once, [*first, *second], NO_START_OFFSET)


def test_a_range_across_the_start_offset_begins_there() -> None:
    stored = (StateBatch(0, 9, 0, 1), StateBatch(10, 19, 2, 1))
    assert combined(stored, (), 5) == (StateBatch(5, 9, 0, 1), StateBatch(10, 19, 2, 1))
    assert combined(stored, [StateBatch(0, 30, 0, 1)], 15) == (
        StateBatch(15, 19, 2, 1),
        StateBatch(20, 30, 0, 1),
    )
