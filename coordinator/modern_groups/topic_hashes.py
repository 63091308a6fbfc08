"""Hashing of many topics outside the heartbeats, so that none takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.effects import Effects, Steps
    from coordinator.topics import TopicHashes

HASHED_AT_ONCE: Final = 100
"""Topics whose hashes are computed within a heartbeat: two milliseconds. Fixed by how long the loop
may be held."""


class HashingWatch(Protocol):
    """State of a group while its topics are hashed."""

    is_hashing: bool


def are_hashed_later(
    hashes: TopicHashes, watch: HashingWatch, topics: Iterable[str], effects: Effects
) -> bool:
    """Return whether hashing of a group's topics was deferred, because there are many."""
    if watch.is_hashing:
        return True
    missing = hashes.missing(topics)
    if len(missing) <= HASHED_AT_ONCE:
        return False
    watch.is_hashing = True
    effects.jobs.append(_hash(hashes, watch, missing))
    return True


def _hash(hashes: TopicHashes, watch: HashingWatch, names: list[str]) -> Steps[None]:
    try:
        for name in names:
            hashes.prepare(name)
            yield None
    finally:
        watch.is_hashing = False
