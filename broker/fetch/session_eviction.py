"""Choice of the fetch session to evict for a new one when all slots are taken (KIP-227).

    the least recently used one              if unused for longer than `eviction_ms`, of any kind
    else, for a follower's session           the smallest of the consumers'; without any, the
                                             smallest of the mature followers' that is smaller
    else, for a consumer's session           the smallest of the mature consumers' that is smaller

A session is *mature* if it was used more than `eviction_ms` after its creation; its size is the
number of its partitions at its last use. So a new session is not taken away by the next larger one,
and short-lived readers do not evict long-lived ones.

Worked example, with a limit of two minutes and two slots: a consumer's session of 5 partitions is
ten minutes old, a follower's of 3 is new. A consumer with 5 gets no session, one with 6 takes the
place of the first. A follower takes the place of the consumer's whatever the sizes; the next one,
none, as both are followers' and new.

The partitions of all sessions together are bounded too, unlike in Apache Kafka. For a follower's
session the largest consumer's is evicted, as that makes the most room; for a consumer's only
sessions that have long been unused: else one client with many partitions would take the sessions of
all others.

Source: `FetchSessionCacheShard.tryEvict` and `touch` in Apache Kafka, which has eight such caches
to avoid sharing a lock; here is one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.fetch.fetch_sessions import FetchSession

Rank = tuple[bool, int, int]
"""Follower's or not, number of partitions, id: the least is evicted first."""

NO_RANK: Rank = (False, -1, -1)


class EvictionOrder:
    """Sessions that may be evicted, in order. A use is free unless it changes the order."""

    def __init__(self, eviction_ms: int) -> None:
        self._eviction_ms = eviction_ms
        self._by_followers: list[Rank] = []
        """Sessions that a follower's may evict: consumers' and mature ones."""
        self._by_all: list[Rank] = []
        """Sessions that any session may evict: mature ones."""
        self.partition_count = 0
        """Of all sessions, each as of its last use."""

    def note_use(self, session: FetchSession, now_ms: int) -> None:
        """Call it when a session was made, and after each request of it."""
        is_mature = session.is_mature or now_ms - session.created_ms > self._eviction_ms
        size = len(session.partitions)
        if size == session.rank[1] and is_mature == session.is_mature:
            return
        self.forget(session)
        self.partition_count += size
        session.is_mature = is_mature
        session.rank = rank = (session.is_by_follower, size, session.identity)
        if is_mature:
            insort(self._by_all, rank)
        if is_mature or not session.is_by_follower:
            insort(self._by_followers, rank)

    def forget(self, session: FetchSession) -> None:
        """Forget a session that has ended."""
        self.partition_count -= max(0, session.rank[1])
        self._drop(session)
        session.rank = NO_RANK

    def _drop(self, session: FetchSession) -> None:
        for order in (self._by_all, self._by_followers):
            place = bisect_left(order, session.rank)
            if place < len(order) and order[place] == session.rank:
                del order[place]

    def is_stale(self, session: FetchSession, now_ms: int) -> bool:
        """Return whether it has been unused for long enough that any session may evict it."""
        return now_ms - session.last_used_ms > self._eviction_ms

    def first_below(self, size: int, *, is_by_follower: bool) -> int | None:
        """Id of the session to evict for a new one, None if there is none."""
        order = self._by_followers if is_by_follower else self._by_all
        if not order or (is_by_follower, size, 0) < order[0]:
            return None
        return order[0][2]

    def largest_consumer(self) -> int | None:
        """The id of the consumer's session with the most partitions, None if there is none."""
        place = bisect_left(self._by_followers, (True, -1, -1))
        return self._by_followers[place - 1][2] if place else None
