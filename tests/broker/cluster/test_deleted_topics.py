"""A broker keeps nothing of a deleted topic that a new topic of that name could inherit."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from broker.cluster.deleted_topics import forget_deleted_topics
from config.topic import TopicConfig
from tests.broker.coordinators.group_broker import GroupBroker, run_group_broker
from tests.broker.handlers.brokers.test_alter_replica_log_dirs import second_directory
from tests.storage.produced import TOPIC_ID

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 60


def test_a_recreated_topic_ignores_the_directory_chosen_for_the_deleted_one(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        broker.metadata.on_update(
            partial(
                forget_deleted_topics,
                broker.logs,
                broker.topic_configs,
                broker.groups,
                broker.services.share_coordinators,
            )
        )
        await broker.create_topic("orders")
        other = second_directory(broker, tmp_path / "other")
        broker.logs.want("orders", 0, other)

        await broker.topics.delete(["orders"])
        await broker.metadata.wait_until(lambda: broker.metadata.topic("orders") is None)
        async with asyncio.timeout(SECONDS):
            while broker.logs.get("orders", 0) is not None:
                await broker.timers.sleep(1)
        log = broker.logs.create("orders", 0, TOPIC_ID, TopicConfig())

        assert log.directory is broker.logs.directories[0]

    run_group_broker(tmp_path, scenario)
