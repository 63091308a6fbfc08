"""A priority queue that gives elements of equal load in the order of `java.util.PriorityQueue`.

Of two processes with the same load either could get a task. With this order, a group that Apache
Kafka coordinated before is assigned here as it would be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ElementT = TypeVar("ElementT")


class LoadQueue(Generic[ElementT]):
    """A binary heap, least load first; loads change only while an element is out of it."""

    __slots__ = ("_heap", "_load")

    def __init__(
        self, load: Callable[[ElementT], float], elements: Iterable[ElementT] = ()
    ) -> None:
        self._load = load
        self._heap: list[ElementT] = []
        for each in elements:
            self.push(each)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, element: ElementT) -> None:
        """Put an element in; behind its parents of equal load."""
        heap, load = self._heap, self._load(element)
        heap.append(element)
        place = len(heap) - 1
        while place > 0:
            parent = (place - 1) >> 1
            if load >= self._load(heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = element

    def pop(self) -> ElementT:
        """Take the element of least load out; raises IndexError if there is none."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last
        first, size, load = heap[0], len(heap), self._load(last)
        place = 0
        while place < size >> 1:
            child = 2 * place + 1
            right = child + 1
            if right < size and self._load(heap[child]) > self._load(heap[right]):
                child = right
            if load <= self._load(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = last
        return first
