"""Fetch sessions: the table of KIP-227, limits, and what is remembered."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from broker.fetch.fetch_sessions import (
    LAST_EPOCH,
    LONGEST_NAME,
    FetchSessions,
    Opened,
    SessionLimits,
)
from protocol.errors import ApiError, ErrorCode
from protocol.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

NAMED = 12
BY_ID = 13
TOPIC_ID = UUID(int=77)
PLENTY = 10_000


def sessions(slots: int = 2, eviction_ms: int = 1000) -> FetchSessions:
    numbers = count(1)
    return FetchSessions(SessionLimits(slots, PLENTY, eviction_ms), lambda: next(numbers))


def request(session_id: int, epoch: int, **topics: list[int]) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchRequest.Topic(
                topic=name,
                partitions=[
                    FetchRequest.Topic.Partition(
                        partition=index, fetch_offset=0, partition_max_bytes=1
                    )
                    for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ],
    )


def keys(opened: Opened) -> list[tuple[str, int]]:
    return [(one.topic, one.index) for one in opened.partitions]


def test_epoch_minus_one_makes_no_session() -> None:
    opened = sessions().open(request(0, -1, a=[0]), NAMED, 0)
    assert opened.session_id == 0
    assert keys(opened) == [("a", 0)]


def test_epoch_zero_opens_a_session_and_later_requests_list_only_changes() -> None:
    cache = sessions()
    first = cache.open(request(0, 0, a=[0, 1]), NAMED, 0)
    assert first.session_id == 1
    assert not first.is_incremental
    second = cache.open(request(1, 1), NAMED, 0)
    assert second.is_incremental
    assert keys(second) == [("a", 0), ("a", 1)]
    third = cache.open(request(1, 2, b=[5]), NAMED, 0)
    assert keys(third) == [("a", 0), ("a", 1), ("b", 5)]


def test_forgotten_partitions_leave_the_session_and_an_empty_one_is_dropped() -> None:
    cache = sessions()
    cache.open(request(0, 0, a=[0, 1]), NAMED, 0)
    forget = request(1, 1)
    forget.forgotten_topics_data = [FetchRequest.ForgottenTopicsData(topic="a", partitions=[0])]
    assert keys(cache.open(forget, NAMED, 0)) == [("a", 1)]
    forget = request(1, 2)
    forget.forgotten_topics_data = [FetchRequest.ForgottenTopicsData(topic="a", partitions=[1])]
    opened = cache.open(forget, NAMED, 0)
    assert opened.session_id == 0
    assert len(cache) == 0


def test_unknown_session_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        sessions().open(request(9, 1), NAMED, 0)
    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_unexpected_epoch_is_refused_and_the_session_survives() -> None:
    cache = sessions()
    cache.open(request(0, 0, a=[0]), NAMED, 0)
    with pytest.raises(ApiError) as caught:
        cache.open(request(1, 2), NAMED, 0)
    assert caught.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.open(request(1, 1), NAMED, 0).session_id == 1


def test_session_by_name_refuses_requests_by_id() -> None:
    cache = sessions()
    cache.open(request(0, 0, a=[0]), NAMED, 0)
    with pytest.raises(ApiError) as caught:
        cache.open(request(1, 1), BY_ID, 0)
    assert caught.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_epoch_wraps_to_one() -> None:
    cache = sessions()
    session = cache.open(request(0, 0, a=[0]), NAMED, 0).session
    assert session is not None
    session.epoch = LAST_EPOCH
    cache.open(request(1, LAST_EPOCH), NAMED, 0)
    assert session.epoch == 1


def test_full_cache_answers_without_session_until_the_oldest_has_rested() -> None:
    cache = sessions(slots=1, eviction_ms=1000)
    assert cache.open(request(0, 0, a=[0]), NAMED, 0).session_id == 1
    assert cache.open(request(0, 0, b=[0]), NAMED, 1000).session_id == 0
    assert cache.open(request(0, 0, b=[0]), NAMED, 1001).session_id == 2
    with pytest.raises(ApiError):
        cache.open(request(1, 1), NAMED, 1001)


def test_partition_listed_twice_is_served_once() -> None:
    assert keys(sessions().open(request(0, -1, a=[0, 0]), NAMED, 0)) == [("a", 0)]


def test_names_too_long_for_a_topic_are_truncated_in_the_session() -> None:
    cache, long = sessions(), "x" * 32_000
    opened = cache.open(request(0, 0, a=[0], **{long: [0]}), NAMED, 0)
    assert keys(opened) == [("a", 0), (long[:LONGEST_NAME], 0)]
    forgetting = request(opened.session_id, 1)
    gone = FetchRequest.ForgottenTopicsData(topic=long, partitions=[0])
    forgetting.forgotten_topics_data = [gone]
    assert keys(cache.open(forgetting, NAMED, 0)) == [("a", 0)]


def test_epoch_zero_with_an_old_session_closes_it() -> None:
    cache = sessions(slots=1)
    cache.open(request(0, 0, a=[0]), NAMED, 0)
    assert cache.open(request(1, 0, a=[0]), NAMED, 0).session_id == 2
    assert len(cache) == 1


def test_a_request_without_partitions_opens_a_session_that_gets_them_later() -> None:
    cache = sessions()
    opened = cache.open(request(0, 0), NAMED, 0)
    assert opened.is_empty
    assert opened.session_id == 1
    added = cache.open(request(1, 1, a=[0]), NAMED, 0)
    assert not added.is_empty
    assert keys(added) == [("a", 0)]


def test_an_answer_knows_whether_its_session_has_gone_on_since() -> None:
    cache = sessions()
    cache.open(request(0, 0, a=[0]), NAMED, 0)
    second = cache.open(request(1, 1), NAMED, 0)
    before = second.is_superseded
    third = cache.open(request(1, 2), NAMED, 0)
    assert (before, second.is_superseded, third.is_superseded) == (False, True, False)


def steps_of(steps: Generator[None, None, Opened]) -> tuple[int, Opened]:
    """Return the number of steps, and their result."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            opened: Opened = end.value
            return count, opened
        count += 1


def test_long_request_opens_changes_and_ends_a_session_in_steps() -> None:
    closing: list[Iterator[None]] = []
    numbers = count(1)
    cache = FetchSessions(SessionLimits(2, PLENTY, 1000), lambda: next(numbers), closing.append)
    many = list(range(5000))

    steps, first = steps_of(cache.open_in_steps(request(0, 0, a=many), NAMED, 0))
    assert steps >= 50
    assert first.session is not None
    assert [one.index for one in first.partitions] == many

    steps, second = steps_of(cache.open_in_steps(request(1, 1, a=[*many[10:], 7777]), NAMED, 0))
    assert steps >= 100
    assert [one.index for one in second.partitions] == [*many[:10], *many[10:], 7777]
    assert second.session is first.session

    with pytest.raises(ApiError) as refused:
        steps_of(cache.open_in_steps(request(1, 1, a=many), NAMED, 0))
    assert refused.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH

    steps_of(cache.open_in_steps(request(1, -1, a=[0]), NAMED, 0))
    assert first.session.is_closed
    assert len(list(closing[0])) >= 100


def test_session_that_is_evicted_while_it_changes_is_unknown() -> None:
    cache = sessions(slots=1)
    many = list(range(1000))
    cache.open(request(0, 0, a=[0]), NAMED, 0)
    steps = cache.open_in_steps(request(1, 1, a=many), NAMED, 0)
    next(steps)
    cache.open(request(0, 0, b=[0]), NAMED, 5000)
    with pytest.raises(ApiError) as refused:
        steps_of(steps)
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_later_of_two_concurrent_session_requests_wins() -> None:
    cache = sessions()
    many = list(range(1000))
    cache.open(request(0, 0, a=[0]), NAMED, 0)
    steps = cache.open_in_steps(request(1, 1, a=many), NAMED, 0)
    next(steps)
    assert cache.open(request(1, 2), NAMED, 0).is_incremental
    with pytest.raises(ApiError) as refused:
        steps_of(steps)
    assert refused.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
