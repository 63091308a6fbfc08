"""A coordinator whose log cannot be opened for now, for want of file descriptors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.coordinators.loading import until_loaded
from tests.broker.handlers import one_broker
from tests.storage.exhaustion import ExhaustedFileSystem

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OFFSETS_TOPIC = "__consumer_offsets"


def test_groups_are_loaded_once_there_are_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = ExhaustedFileSystem()
    monkeypatch.setattr(one_broker, "LocalFileSystem", lambda: filesystem)

    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        member_id = await broker.stable_group()
        partition = broker.replicas.partition(OFFSETS_TOPIC, broker.groups.partition_for(GROUP))
        assert partition is not None
        partition.log.release()
        filesystem.run_out(0, failures=3)

        broker.groups.partition_changed(partition, False)
        broker.groups.partition_changed(partition, True)

        async with asyncio.timeout(60):
            await until_loaded(broker.groups)
        assert filesystem.failures == 0
        assert (await broker.sync(member_id)).assignment == b"all"

    run_group_broker(tmp_path, scenario)
