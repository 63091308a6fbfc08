"""Followers that flush before they fetch on, which is how they say what they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from tests.broker.partitions.test_durability import HeldDisk
from tests.broker.replica_fetchers.nodes import Ensemble, run_ensemble

if TYPE_CHECKING:
    from pathlib import Path

ALL = (0, 1, 2)
SLOW = 2
EACH = TopicConfig(flush_messages=1)


def lead(nodes: Ensemble, config: TopicConfig, epoch: int = 0) -> HeldDisk:
    """Lead a topic so configured at broker 0; return the disk of broker 2, which waits."""
    disk = HeldDisk()
    for node in nodes.nodes.values():
        node.topic_configs.config = config
    slow = nodes[SLOW].replicas
    slow._services = slow._services._replace(flushes=disk)
    nodes.lead(0, isr=ALL, epoch=epoch)
    return disk


def test_nothing_is_committed_that_a_followers_disk_lacks(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        disk = lead(nodes, EACH)
        nodes[0].append(3)
        await nodes.until(lambda: bool(disk.asked))
        await nodes.until(lambda: nodes[1].offsets[1] == 3)
        assert nodes[SLOW].offsets == (0, 3)
        await nodes[0].timers.sleep(50)
        assert nodes[0].offsets == (0, 3)

        disk.flush()

        await nodes.until_equal(3)
        assert nodes.links.count(f"broker-{SLOW}-fetcher-0-flushed") == 1

    run_ensemble(tmp_path, scenario)


def test_with_the_leaders_disk_alone_followers_flush_beside(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        disk = lead(nodes, TopicConfig(flush_messages=1, flush_replicas="leader"))
        nodes[0].append(3)

        await nodes.until_equal(3)

        assert [str(log) for log in disk.asked] == ["flights-0"]
        assert not [link for link in nodes.links if link.endswith("-flushed")]

    run_ensemble(tmp_path, scenario)


def test_unflushed_records_are_not_committed_at_a_new_leader(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        disk = lead(nodes, EACH)
        nodes[0].append(3)
        await nodes.until(lambda: bool(disk.asked))
        await nodes.until(lambda: nodes[1].offsets[1] == 3)

        nodes.lead(1, isr=ALL, epoch=1)
        await nodes[0].timers.sleep(50)
        assert nodes[1].offsets == (0, 3)
        disk.flush()

        await nodes.until_equal(3)

    run_ensemble(tmp_path, scenario)


@pytest.mark.parametrize("code", [ErrorCode.KAFKA_STORAGE_ERROR])
def test_a_flush_that_fails_is_tried_again(tmp_path: Path, code: ErrorCode) -> None:
    async def scenario(nodes: Ensemble) -> None:
        disk = lead(nodes, EACH)
        nodes[0].append(3)
        await nodes.until(lambda: bool(disk.asked))

        disk.begin()
        disk.end(ApiError(code))
        await nodes.until(lambda: bool(disk.asked))
        assert nodes[0].offsets == (0, 3)
        disk.flush()

        await nodes.until_equal(3)

    run_ensemble(tmp_path, scenario)


def test_the_key_reaches_replicas_that_are_followed_already(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        lead(nodes, TopicConfig())
        nodes[0].append(3)
        await nodes.until_equal(3)
        disk = HeldDisk()
        slow = nodes[SLOW]
        slow.partition._services = slow.partition._services._replace(flushes=disk)

        for node in nodes.nodes.values():
            node.replicas.configure(node.partition, EACH)
        nodes[0].append(3)
        await nodes.until(lambda: bool(disk.asked))
        await nodes.until(lambda: slow.offsets[1] == 6 or bool(disk.asked))
        disk.flush()
        await nodes.until(lambda: slow.offsets[1] == 6)
        assert nodes[0].offsets[0] == 3
        disk.flush()

        await nodes.until_equal(6)
        assert f"broker-{SLOW}-fetcher-0-flushed" in nodes.links
        for node in nodes.nodes.values():
            node.replicas.configure(node.partition, TopicConfig())
        nodes[0].append(3)
        await nodes.until_equal(9)
        assert f"broker-{SLOW}-fetcher-0-flushed" not in nodes.links

    run_ensemble(tmp_path, scenario)
