"""Positions of one request in pieces, each of which a coordinator stores as a unit.

A client may commit as many positions as fit into a request, the same partition repeatedly, and
storing one takes 20 microseconds. So a request with more than `POSITIONS_AT_ONCE` of them is
decided, stored and applied piece by piece, in its order, and other requests are served between the
pieces. The errors of a commit are per partition: a piece that fails sets the error of its
partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

POSITIONS_AT_ONCE: Final = 250
"""Fixed: five milliseconds of the event loop."""
ANSWERS_AT_ONCE: Final = 100
"""Partitions that are only answered for: a tenth of a millisecond."""


class Topic(Protocol):
    """A topic in a request for positions."""

    @property
    def partitions(self) -> list[Any]:
        """As the client listed them, each with a `partition_index`."""


T = TypeVar("T", bound=Topic)


def are_many(topics: Sequence[Topic]) -> bool:
    """Return whether to process them in pieces."""
    count = 0
    for topic in topics:
        count += 1 + len(topic.partitions)
        if count > POSITIONS_AT_ONCE:
            return True
    return False


def in_pieces(
    topics: Sequence[T], existing_in: Callable[[T], Container[int]]
) -> Iterator[list[tuple[T, list[Any]]]]:
    """Topics with those of their partitions that exist, at most 500 at once, in the same order.

    Some pieces are empty: between any two others may be served.
    """
    piece: list[tuple[T, list[Any]]] = []
    count = 0
    for topic in topics:
        existing = existing_in(topic)
        for start in range(0, len(topic.partitions) or 1, POSITIONS_AT_ONCE):
            some = topic.partitions[start : start + POSITIONS_AT_ONCE]
            known = [each for each in some if each.partition_index in existing]
            if known:
                piece.append((topic, known))
                count += len(known)
            if count >= POSITIONS_AT_ONCE:
                yield piece
                piece, count = [], 0
            else:
                yield []
    if piece:
        yield piece
