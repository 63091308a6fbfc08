"""Malformed nodes: each affects its own subject, and nothing else."""

from __future__ import annotations

import pytest

from controller.znodes import (
    CONTROLLER,
    TOPIC_ENTITY,
    PartitionState,
    broker_path,
    config_path,
    decode_state,
    encode_state,
    state_path,
)
from tests.controller.harness import Cluster, run_cluster, turns
from tests.controller.test_controller import _create

OFFLINE = PartitionState(-1, 4, (7,), controller_epoch=1)


async def elect_anew(cluster: Cluster) -> None:
    """Depose the controller, so that the next one loads everything."""
    await cluster.store.delete(CONTROLLER)
    await turns(100)


@pytest.mark.parametrize("data", [b"{not json", b"[]", b""])
def test_topic_config_that_cannot_be_read_ends_no_election(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(cluster: Cluster) -> None:
        for name in ("broken", "sound"):
            await _create(cluster, name, partitions=1)
        await cluster.store.set(config_path(TOPIC_ENTITY, "broken"), data)
        path = state_path("sound", 0)
        offline = PartitionState(-1, 4, (0,), controller_epoch=1)
        await cluster.store.set(path, encode_state(offline))
        # Nobody of its in-sync set lives: whether another may lead, its configuration says.
        await cluster.store.set(state_path("broken", 0), encode_state(OFFLINE))
        await elect_anew(cluster)

        assert decode_state(path, (await cluster.store.get(path)).data).leader == 0
        broken = decode_state("", (await cluster.store.get(state_path("broken", 0))).data)
        assert broken.leader == -1
        assert "broken" in caplog.text

    run_cluster(scenario, 0)


def test_an_unreadable_broker_znode_does_not_stop_an_election(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        await _create(cluster, "orders", partitions=1)
        await cluster.store.create(broker_path(9), b"{not json")
        await elect_anew(cluster)

        member = cluster.members[0].controller
        assert member.is_active
        assert member.context is not None
        assert list(member.context.live_brokers) == [0]
        assert "broker 9" in caplog.text

    run_cluster(scenario, 0)
