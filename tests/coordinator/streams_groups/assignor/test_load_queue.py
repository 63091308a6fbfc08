"""Least load first; of equal loads, as `java.util.PriorityQueue` has them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.streams_groups.assignor.load_queue import LoadQueue


@given(st.lists(st.integers(0, 5)))
def test_elements_come_by_load(loads: list[int]) -> None:
    queue = LoadQueue(float, loads)

    assert [queue.pop() for _ in loads] == sorted(loads)
    assert not queue


def test_equal_loads_come_as_from_javas_heap() -> None:
    queue = LoadQueue(lambda _: 0.0, "abcdef")

    assert "".join(queue.pop() for _ in range(6)) == "afedcb"


def test_an_element_that_comes_back_goes_behind_those_of_its_load() -> None:
    loads = dict.fromkeys("abc", 0)
    queue = LoadQueue(loads.__getitem__, "abc")
    taken = []
    for _ in range(9):
        each = queue.pop()
        taken.append(each)
        loads[each] += 1
        queue.push(each)

    assert "".join(taken) == "acbcbabac"
