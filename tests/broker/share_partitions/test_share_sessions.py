"""Sessions: their epochs, their number, and the connections that they end with."""

from __future__ import annotations

from uuid import UUID

import pytest

from broker.share_partitions import share_sessions
from broker.share_partitions.share_sessions import (
    CLOSING_EPOCH,
    LAST_EPOCH,
    Member,
    ShareSession,
    ShareSessions,
    TopicPartition,
)
from protocol.errors import ApiError, ErrorCode
from tests.broker.handlers.share_groups.share_broker import Peer

ONE, TWO = Member("g", "one"), Member("g", "two")


def sessions(limit: int = 10) -> tuple[ShareSessions, list[ShareSession]]:
    ended: list[ShareSession] = []
    return ShareSessions(limit, ended.append), ended


def test_epoch_after_the_last_is_one() -> None:
    some, _ = sessions()
    session = some.open(ONE, None)
    session.epoch = LAST_EPOCH

    some.require(ONE, LAST_EPOCH)

    assert some.require(ONE, 1) is session


def test_each_epoch_is_taken_once() -> None:
    some, _ = sessions()
    some.open(ONE, None)

    some.require(ONE, 1)

    with pytest.raises(ApiError) as raised:
        some.require(ONE, 1)
    assert raised.value.code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert some.require(ONE, CLOSING_EPOCH).epoch == 2


def test_member_that_opens_a_new_session_takes_no_second_place() -> None:
    some, ended = sessions(limit=1)
    first = some.open(ONE, None)

    second = some.open(ONE, None)

    assert len(some) == 1
    assert not some.remove(first)
    assert (first.is_open, second.is_open, ended) == (False, True, [])
    with pytest.raises(ApiError) as raised:
        some.open(TWO, None)
    assert raised.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_all_sessions_of_a_connection_end_with_it() -> None:
    some, ended = sessions()
    peer = Peer()
    theirs = [some.open(ONE, peer), some.open(TWO, peer)]
    some.open(Member("g", "three"), Peer())

    peer.hang_up()

    assert ended == theirs
    assert len(some) == 1
    assert some.has_group("g")


def test_group_has_gone_when_its_last_session_has() -> None:
    some, _ = sessions()
    one, two = some.open(ONE, None), some.open(TWO, None)

    some.remove(one)
    assert some.has_group("g")
    some.remove(two)

    assert not some.has_group("g")


def test_partitions_of_all_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_sessions, "MOST_PARTITIONS", 3)
    some, _ = sessions()
    a, b, c, d = (TopicPartition(UUID(int=1), index) for index in range(4))
    one, two = some.open(ONE, None), some.open(TWO, None)

    for each in (a, b, c, a):
        some.add(one, each)
    some.forget(one, a)
    some.forget(one, a)
    some.add(one, d)
    with pytest.raises(ApiError) as raised:
        some.add(two, a)

    assert raised.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert list(one.partitions) == [b, c, d]
    some.remove(one)
    some.add(two, a)


def test_nothing_is_added_to_a_session_that_has_ended() -> None:
    some, _ = sessions()
    session = some.open(ONE, None)
    some.remove(session)

    with pytest.raises(ApiError) as raised:
        some.add(session, TopicPartition(UUID(int=1), 0))

    assert raised.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert not session.partitions


@pytest.mark.parametrize("count", [3, 7], ids="of {}".format)
def test_each_partition_has_its_turn(count: int) -> None:
    some, _ = sessions()
    session = some.open(ONE, None)
    partitions = [TopicPartition(UUID(int=1), index) for index in range(count)]
    for each in partitions:
        some.add(session, each)

    firsts = set()
    for epoch in range(1, count + 1):
        some.require(ONE, epoch)
        turn = session.turn(4)
        assert len(turn) == len(set(turn)) == min(count, 4)
        firsts.update(turn[:2])

    assert firsts == set(partitions)


def test_partition_that_was_served_comes_last() -> None:
    some, _ = sessions()
    first, second = TopicPartition(UUID(int=1), 0), TopicPartition(UUID(int=1), 1)
    session = some.open(ONE, None)
    some.add(session, first)
    some.add(session, second)

    session.served(first)
    session.served(TopicPartition(UUID(int=1), 9))

    assert list(session.partitions) == [second, first]
