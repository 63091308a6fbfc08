"""Sessions, rights, and what becomes of records when members, leaders and epochs go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from coordinator.share_partitions.in_flight import MOST_RELEASED
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from tests.broker.handlers.data_broker import TOPIC, records
from tests.broker.handlers.share_groups.share_broker import (
    ACCEPT,
    GROUP,
    RELEASE,
    Peer,
    ShareBroker,
    acquired,
    later,
    run_share_broker,
)
from tests.controller.harness import turns
from tests.support.broker_parts.allowing import allowing

if TYPE_CHECKING:
    from pathlib import Path

READ_GROUP = (ResourceType.GROUP, GROUP, AclOperation.READ)
READ_TOPIC = (ResourceType.TOPIC, TOPIC, AclOperation.READ)


def refusal(broker: ShareBroker, *acks: tuple[int, ...], **fields: Any) -> ErrorCode:
    with pytest.raises(ApiError) as raised:
        broker.share_fetch(*acks, **fields)
    return raised.value.code


def test_session_that_does_not_exist_or_has_gone_on_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()

        unknown = refusal(broker, share_session_epoch=1)
        early = refusal(broker, (0, 2, ACCEPT))
        await broker.fetched(max_records=3)
        await broker.fetched((0, 2, ACCEPT), share_session_epoch=1)
        again = refusal(broker, (0, 2, ACCEPT), share_session_epoch=1)
        with pytest.raises(ApiError) as opening:
            await broker.acknowledge(0, (0, 2, ACCEPT))

        assert unknown == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert early == ErrorCode.INVALID_REQUEST
        assert again == opening.value.code == ErrorCode.INVALID_SHARE_SESSION_EPOCH

    run_share_broker(tmp_path, scenario)


@pytest.mark.parametrize("member_id", [None, "", "x" * 37])
def test_member_needs_an_id(member_id: str | None, tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()

        assert refusal(broker, member_id=member_id) == ErrorCode.INVALID_REQUEST
        assert refusal(broker, group_id=None) == ErrorCode.INVALID_REQUEST

    run_share_broker(tmp_path, scenario)


def test_session_beyond_the_limit_is_refused_when_the_time_is_over(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        await broker.fetched()

        refused = broker.share_fetch(member_id="two", max_wait_ms=1)
        with pytest.raises(ApiError) as raised:
            await later(refused)
        await broker.fetched(share_session_epoch=-1)

        assert raised.value.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert await broker.fetched(member_id="two") is not None

    run_share_broker(tmp_path, scenario, group_share_max_share_sessions=1)


def test_last_request_of_a_session_releases_the_members_records(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        await broker.fetched()

        closed = await broker.fetched((0, 2, ACCEPT), share_session_epoch=-1)

        assert closed.acknowledge_error_code == ErrorCode.NONE
        assert acquired(closed) == []
        assert acquired(await broker.fetched(member_id="two")) == [(3, 8, 2)]

    run_share_broker(tmp_path, scenario)


def test_a_lost_connection_releases_the_members_records(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        broker.peer = peer = Peer()
        await broker.fetched()
        broker.peer = None
        waiting = broker.share_fetch(member_id="two", max_wait_ms=60_000)

        peer.hang_up()

        assert acquired(await later(waiting)) == [(0, 8, 2)]
        assert len(broker.services.share_partitions.sessions) == 1

    run_share_broker(tmp_path, scenario)


def test_a_disconnect_releases_the_records_of_all_partitions_with_their_delivery_count(
    tmp_path: Path,
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.create_topic(count=2)
        for index in range(2):
            await broker.produce({(TOPIC, index): records(3)})
        broker.peer = peer = Peer()
        await broker.fetched()
        await broker.fetched(index=1, share_session_epoch=1)
        before = len(broker.state.changes)

        peer.hang_up()

        released = [batch for change in broker.state.changes[before:] for batch in change.batches]
        assert [(one.last_offset, one.delivery_count) for one in released] == [(2, 1), (2, 1)]
        assert len(broker.services.share_partitions) == 0

    run_share_broker(tmp_path, scenario)


def test_member_that_held_much_is_released_in_parts(tmp_path: Path) -> None:
    count = 2 * MOST_RELEASED + 100

    async def scenario(broker: ShareBroker) -> None:
        broker.set(max_record_locks=count)
        await broker.create_topic()
        for _ in range(count):
            await broker.produce({(TOPIC, 0): records(1)})
            await turns(1)
        broker.peer = peer = Peer()
        for epoch in range(3):
            await broker.fetched(max_records=count, batch_size=1, share_session_epoch=epoch)
            await turns(1)
        broker.state.changes.clear()

        peer.hang_up()
        broker.peer = None
        first = acquired(await broker.fetched(member_id="two", max_records=count))
        await turns()

        released = [
            sum(one.last_offset - one.first_offset + 1 for one in change.batches)
            for change in broker.state.changes
        ]
        assert released == [MOST_RELEASED, MOST_RELEASED, 100]
        assert [one[2] for one in first] == [2] * MOST_RELEASED
        rest = await broker.fetched(member_id="two", max_records=count, share_session_epoch=1)
        assert {one[2] for one in acquired(rest)} == {2}

    run_share_broker(tmp_path, scenario)


def test_a_session_reopened_on_another_connection_survives_the_old_one(
    tmp_path: Path,
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        broker.peer = old = Peer()
        await broker.fetched()
        broker.peer = Peer()
        await broker.fetched()

        old.hang_up()

        assert (await broker.acknowledge(1, (0, 8, ACCEPT))).error_code == ErrorCode.NONE

    run_share_broker(tmp_path, scenario)


def test_group_without_sessions_is_forgotten_once_all_is_stored(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        shares = broker.services.share_partitions
        await broker.fetched()
        broker.state.is_held = True
        await broker.fetched(share_session_epoch=-1)
        assert len(shares) == 1

        broker.state.let_go()

        assert len(shares) == len(shares.sessions) == 0
        assert acquired(await broker.fetched()) == [(0, 8, 2)]

    run_share_broker(tmp_path, scenario)


def test_wait_of_a_session_that_ends_gets_nothing(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=0)
        waiting = broker.share_fetch(max_wait_ms=60_000)
        await broker.fetched(share_session_epoch=-1)
        await broker.produce({(TOPIC, 0): records(3)})

        with pytest.raises(ApiError) as raised:
            await later(waiting)

        assert raised.value.code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert acquired(await broker.fetched(member_id="two")) == [(0, 2, 1)]

    run_share_broker(tmp_path, scenario)


def test_change_of_leader_ends_the_wait_and_a_returning_leader_reads_the_state(
    tmp_path: Path,
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        await broker.fetched()
        await broker.acknowledge(1, (0, 8, *[ACCEPT] * 3, *[RELEASE] * 6))
        await broker.fetched(share_session_epoch=2)
        waiting = broker.share_fetch(member_id="two", max_wait_ms=60_000)
        partition = broker.partition

        broker.lead(partition, partition.leader_epoch + 1, leader=1, isr=(0, 1))
        moved = await later(waiting)
        late = await broker.acknowledge(3, (3, 8, ACCEPT))
        broker.lead(partition, partition.leader_epoch + 1)
        back = await broker.fetched(share_session_epoch=4)

        assert moved.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert moved.current_leader.leader_id == 1
        assert late.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert acquired(back) == [(3, 8, 2)]

    run_share_broker(tmp_path, scenario)


def test_fenced_share_state_is_dropped_and_read_again(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        await broker.fetched()
        broker.state.refusal = ErrorCode.FENCED_STATE_EPOCH

        fenced = await broker.acknowledge(1, (0, 8, ACCEPT))
        broker.state.refusal = None
        broker.state.start_offset = 6

        assert fenced.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert acquired(await broker.fetched(share_session_epoch=2)) == [(6, 8, 1)]

    run_share_broker(tmp_path, scenario)


def test_state_that_cannot_be_read_is_an_error_and_read_again_by_the_next(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        broker.state.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        broker.state.is_held = True
        waiting = broker.share_fetch(max_wait_ms=60_000)
        await turns()
        assert not waiting.is_complete

        broker.state.let_go()
        refused = await later(waiting)
        broker.state.refusal = None

        assert refused.error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert acquired(await broker.fetched(share_session_epoch=1)) == [(0, 8, 1)]

    run_share_broker(tmp_path, scenario)


def test_unknown_and_deleted_topics_answer_their_error_codes(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        unknown = await broker.fetched(topic_id=UUID(int=99))
        missing = await broker.fetched(index=7)
        await broker.fetched()
        waiting = broker.share_fetch((0, 8, ACCEPT), share_session_epoch=1, max_wait_ms=60_000)

        await broker.delete_topic()
        await turns()
        gone = await asyncio.wait_for(later(waiting), 5)

        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert gone.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_share_broker(tmp_path, scenario)


def test_group_and_topic_ask_for_the_right_to_read(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        broker.services.authorizer = allowing(READ_TOPIC)
        no_group = refusal(broker)
        broker.services.authorizer = allowing(READ_GROUP)
        no_topic = await broker.fetched()
        not_acknowledged = await broker.acknowledge(1, (0, 8, ACCEPT))
        broker.services.authorizer = allowing(READ_GROUP, READ_TOPIC)

        assert no_group == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert no_topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert not_acknowledged.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert acquired(await broker.fetched(share_session_epoch=2)) == [(0, 8, 1)]

    run_share_broker(tmp_path, scenario)
