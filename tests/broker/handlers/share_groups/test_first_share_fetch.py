"""The first share fetch of many partitions: they are begun in slices, and what may come between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.requests.steps import APPENDS_AT_ONCE
from broker.runtime.deferred import Deferred
from protocol.errors import ApiError, ErrorCode
from tests.broker.handlers.data_broker import TOPIC
from tests.broker.handlers.share_groups.share_broker import (
    GROUP,
    Peer,
    ShareBroker,
    run_share_broker,
)
from tests.broker.handlers.share_groups.test_long_share_requests import all_of
from tests.controller.harness import turns
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from pathlib import Path

MANY = 3 * APPENDS_AT_ONCE


async def begun(broker: ShareBroker, **fields: Any) -> Deferred[Any]:
    """A share fetch of many partitions, of which the first have been begun."""
    await broker.create_topic(count=MANY)
    topic_id = broker.metadata.topic_id(TOPIC)
    fetching = broker.call(broker.fetch_request(topics=all_of(topic_id, MANY), **fields), 2)
    assert isinstance(fetching, Deferred)
    assert 0 < len(broker.services.share_partitions) <= APPENDS_AT_ONCE
    return fetching


async def codes(fetching: Deferred[Any]) -> dict[int, int]:
    """The errors of its answer, by partition."""
    response = await arrival(fetching)
    return {
        one.partition_index: one.error_code
        for topic in response.responses
        for one in topic.partitions
        if one.error_code
    }


def test_partitions_are_begun_in_slices(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        fetching = await begun(broker)

        assert await codes(fetching) == {}
        assert len(broker.services.share_partitions) == MANY

    run_share_broker(tmp_path, scenario)


def test_nothing_more_is_begun_for_a_member_that_hung_up(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        broker.peer = Peer()
        fetching = await begun(broker, max_wait_ms=60_000)

        broker.peer.hang_up()
        with pytest.raises(ApiError) as raised:
            await arrival(fetching)
        await turns()

        assert raised.value.code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert len(broker.services.share_partitions) == 0

    run_share_broker(tmp_path, scenario)


def test_leadership_lost_between_slices_answers_not_leader(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        fetching = await begun(broker)
        shares = broker.services.share_partitions
        served = {key.partition for key in shares._led}
        moved = {min(served), max(set(range(MANY)) - served)}

        for index in moved:
            partition = broker.replicas.partition(TOPIC, index)
            assert partition is not None
            broker.lead(partition, partition.leader_epoch + 1, leader=1, isr=(0, 1))

        assert await codes(fetching) == dict.fromkeys(moved, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert {key.partition for key in shares._led} == set(range(MANY)) - moved

    run_share_broker(tmp_path, scenario)


def test_group_deleted_between_slices_answers_group_id_not_found(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        fetching = await begun(broker)
        served = {key.partition for key in broker.services.share_partitions._led}

        broker.state.refusal = ErrorCode.GROUP_ID_NOT_FOUND

        unserved = set(range(MANY)) - served
        assert await codes(fetching) == dict.fromkeys(unserved, ErrorCode.GROUP_ID_NOT_FOUND)

    run_share_broker(tmp_path, scenario)


def test_partitions_that_load_when_their_group_has_left_are_forgotten(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        broker.peer = Peer()
        broker.state.is_held = True
        waiting = broker.share_fetch(max_wait_ms=60_000)
        shares = broker.services.share_partitions
        assert len(shares) == 1

        broker.peer.hang_up()
        await turns()
        assert len(shares) == 1, "it is being loaded"
        broker.state.let_go()

        assert not shares.sessions.has_group(GROUP)
        assert len(shares) == 0
        waiting.abandon()

    run_share_broker(tmp_path, scenario)
