"""Eviction of fetch sessions from a full cache: a test for each rule of KIP-227."""

from __future__ import annotations

from itertools import count

import pytest

from broker.fetch.fetch_sessions import FetchSessions, SessionLimits
from protocol.errors import ApiError, ErrorCode
from protocol.messages.fetch import FetchRequest

VERSION = 12
EVICTION_MS = 1000
LATER_MS = EVICTION_MS + 1
"""Time at which a session made at 0, and used now, is mature."""


class Cache:
    """Sessions with ids 1, 2 and so on, and what is asked of them."""

    def __init__(self, slots: int, partitions: int = 10_000) -> None:
        numbers = count(1)
        limits = SessionLimits(slots, partitions, EVICTION_MS)
        self.sessions = FetchSessions(limits, lambda: next(numbers))
        self._epochs: dict[int, int] = {}

    def open(self, size: int, now_ms: int = 0, *, follower: int = -1) -> int:
        """Open a session for so many partitions; return its id, 0 if it gets none."""
        request = _request(range(size), session_epoch=0, replica_id=follower)
        session_id = self.sessions.open(request, VERSION, now_ms).session_id
        if session_id:
            self._epochs[session_id] = 1
        return session_id

    def use(self, session_id: int, now_ms: int, size: int = 0, forgotten: int = 0) -> None:
        """Go on with a session, which gets the first `size` partitions or loses some."""
        request = _request(range(size), session_epoch=self._epochs[session_id])
        request.session_id = session_id
        if forgotten:
            gone = FetchRequest.ForgottenTopicsData(topic="a", partitions=list(range(forgotten)))
            request.forgotten_topics_data = [gone]
        self.sessions.open(request, VERSION, now_ms)
        self._epochs[session_id] += 1

    def has(self, session_id: int) -> bool:
        """Return whether a session is cached, as its reader finds out."""
        request = _request([], session_epoch=99)
        request.session_id = session_id
        with pytest.raises(ApiError) as caught:
            self.sessions.open(request, VERSION, 0)
        return caught.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def _request(indexes: range | list[int], session_epoch: int, replica_id: int = -1) -> FetchRequest:
    kind = FetchRequest.Topic.Partition
    partitions = [kind(partition=index, fetch_offset=0, partition_max_bytes=1) for index in indexes]
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=0,
        min_bytes=1,
        session_epoch=session_epoch,
        topics=[FetchRequest.Topic(topic="a", partitions=partitions)] if partitions else [],
    )


def test_a_follower_evicts_a_new_consumer_session() -> None:
    cache = Cache(slots=1)
    consumer = cache.open(size=9)

    follower = cache.open(size=1, follower=2)

    assert follower
    assert cache.has(follower)
    assert not cache.has(consumer)
    assert cache.sessions.evicted_count == 1


def test_a_follower_whose_id_is_in_its_replica_state_counts_as_one() -> None:
    cache = Cache(slots=1)
    cache.open(size=9)
    request = _request([0], session_epoch=0)
    request.replica_state = FetchRequest.ReplicaState(replica_id=2)

    assert cache.sessions.open(request, 15, 0).session_id


def test_the_smallest_consumer_gives_way_to_a_follower() -> None:
    cache = Cache(slots=3)
    large, small, middle = cache.open(size=5), cache.open(size=2), cache.open(size=3)

    cache.open(size=1, follower=2)

    assert [cache.has(one) for one in (large, small, middle)] == [True, False, True]


def test_a_consumer_never_takes_the_place_of_a_follower_that_is_in_use() -> None:
    cache = Cache(slots=1)
    follower = cache.open(size=1, follower=2)
    cache.use(follower, LATER_MS)

    assert cache.open(size=100, now_ms=LATER_MS) == 0
    assert cache.has(follower)


def test_a_consumer_gives_way_to_a_follower_before_another_follower_does() -> None:
    cache = Cache(slots=2)
    follower, consumer = cache.open(size=1, follower=2), cache.open(size=9)
    for one in (follower, consumer):
        cache.use(one, LATER_MS)

    cache.open(size=5, now_ms=LATER_MS, follower=3)

    assert [cache.has(one) for one in (follower, consumer)] == [True, False]


@pytest.mark.parametrize("follower", [-1, 2])
def test_a_mature_session_gives_way_to_a_larger_one_of_its_kind(follower: int) -> None:
    cache = Cache(slots=1)
    former = cache.open(size=2, follower=follower)
    cache.use(former, LATER_MS)

    assert cache.open(size=2, now_ms=LATER_MS, follower=follower) == 0, "not larger"
    assert cache.open(size=3, now_ms=LATER_MS, follower=follower)
    assert not cache.has(former)


@pytest.mark.parametrize("follower", [-1, 2])
def test_a_new_session_is_not_evicted_for_one_of_its_kind(follower: int) -> None:
    cache = Cache(slots=1)
    former = cache.open(size=2, follower=follower)
    cache.use(former, EVICTION_MS)

    assert cache.open(size=50, now_ms=EVICTION_MS, follower=follower) == 0
    assert cache.has(former)


def test_a_session_matures_by_being_used_not_by_time_alone() -> None:
    cache = Cache(slots=1)
    former = cache.open(size=2)
    cache.use(former, EVICTION_MS)

    assert cache.open(size=50, now_ms=LATER_MS) == 0


def test_the_size_that_counts_is_that_of_the_last_use() -> None:
    cache = Cache(slots=2)
    grown, shrunk = cache.open(size=2), cache.open(size=9)
    cache.use(grown, LATER_MS, size=9)
    cache.use(shrunk, LATER_MS, forgotten=7)

    assert cache.open(size=3, now_ms=LATER_MS)

    assert [cache.has(one) for one in (grown, shrunk)] == [True, False]


@pytest.mark.parametrize("follower", [-1, 2])
def test_the_least_recently_used_session_is_evicted_once_stale(follower: int) -> None:
    cache = Cache(slots=2)
    idle = cache.open(size=9, follower=follower)
    used = cache.open(size=1)
    cache.use(used, EVICTION_MS)

    assert cache.open(size=1, now_ms=EVICTION_MS) == 0, "not longer than the limit"
    assert cache.open(size=1, now_ms=LATER_MS)
    assert [cache.has(one) for one in (idle, used)] == [False, True]


def test_a_closed_session_frees_its_slot_and_is_not_evicted() -> None:
    cache = Cache(slots=1)
    closed = cache.open(size=2)
    request = _request([], session_epoch=-1)
    request.session_id = closed
    cache.sessions.open(request, VERSION, 0)

    assert cache.open(size=1)
    assert cache.open(size=1, follower=2)
    assert len(cache.sessions) == 1
    assert cache.sessions.evicted_count == 1


def test_a_cache_without_slots_opens_no_session() -> None:
    cache = Cache(slots=0)
    assert cache.open(size=1, follower=2) == 0


def test_partitions_of_all_sessions_together_are_bounded() -> None:
    cache = Cache(slots=10, partitions=10)
    first, second = cache.open(6), cache.open(4)
    assert (first, second) == (1, 2)

    assert cache.open(1) == 0
    cache.use(second, 0, forgotten=1)
    assert cache.open(1) == 3
    assert cache.open(0) == 4
    assert cache.sessions.evicted_count == 0


def test_a_session_that_grows_too_large_is_closed() -> None:
    cache = Cache(slots=10, partitions=10)
    first, second = cache.open(6), cache.open(3)
    cache.use(second, 0, size=4)

    with pytest.raises(ApiError) as caught:
        cache.use(second, 0, size=5)

    assert caught.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(cache.sessions), cache.has(first)) == (1, True)
    assert cache.open(4) == 3


def test_the_largest_consumer_gives_way_to_the_partitions_of_a_follower() -> None:
    cache = Cache(slots=10, partitions=10)
    small, large, other = cache.open(2), cache.open(4), cache.open(3)

    follower = cache.open(5, follower=7)
    assert [cache.has(one) for one in (small, large, other, follower)] == [True, False, True, True]
    cache.use(follower, 0, size=8)
    assert [cache.has(one) for one in (small, other, follower)] == [True, False, True]
    assert cache.open(11, follower=8) == 0
    assert cache.has(small)


def test_stale_sessions_are_evicted_for_the_partitions_of_any_other() -> None:
    cache = Cache(slots=10, partitions=10)
    idle, in_use = cache.open(4), cache.open(4)
    cache.use(in_use, LATER_MS)

    assert cache.open(11, LATER_MS) == 0  # it would never fit, so nobody has to give way
    assert [cache.has(one) for one in (idle, in_use)] == [True, True]
    assert cache.open(6, LATER_MS) == 3
    assert [cache.has(one) for one in (idle, in_use)] == [False, True]
