"""Offsets of a topic deleted and recreated under the same name: those dropped, and those kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from tests.broker.coordinators.group_broker import GROUP, run_group_broker
from tests.broker.coordinators.loading import until_forgotten, until_loaded
from tests.broker.coordinators.test_groups import commit, committed, replication

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.coordinators.group_broker import GroupBroker


def test_position_in_the_new_topic_is_kept_and_in_the_old_one_forgotten(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        for topic in ("flights", "weather"):
            await broker.create_topic(topic)
        await broker.find_coordinator()
        assert await commit(broker, 700, "flights") == ErrorCode.NONE
        assert await commit(broker, 700, "weather") == ErrorCode.NONE

        broker.groups.topics_deleted({"flights", "weather"})
        assert await commit(broker, 1, "flights") == ErrorCode.NONE
        await until_forgotten()

        assert await committed(broker, "flights") == 1
        assert await committed(broker, "weather") == -1

    run_group_broker(tmp_path, scenario)


def test_offsets_of_a_deleted_topic_are_dropped_while_loading(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        assert await commit(broker, 700, "flights") == ErrorCode.NONE
        replication(broker, [0, 1], [0, 1], leader=1)
        replication(broker, [0, 1], [0], leader=0)
        assert broker.groups.is_loading

        broker.groups.topics_deleted({"flights"})
        await until_loaded(broker.groups)
        await until_forgotten()

        assert await committed(broker, "flights") == -1
        assert broker.groups.shard_for(GROUP).groups.find(GROUP) is None

    run_group_broker(tmp_path, scenario)
