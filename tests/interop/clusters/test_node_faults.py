"""Brokers of a node and their supervisor are killed and restarted in an order that is drawn.

Whatever happens, every record that was acknowledged is there once and in order, and in the end a
supervisor has all brokers up.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.interop.clusters.test_node import (
    CALL_SECONDS,
    HEALED_SECONDS,
    KEYS,
    PARTITIONS,
    TOPIC,
    check_nothing_is_lost_or_doubled,
    goes_on,
)
from tests.interop.conftest import against_apache
from tests.interop.workloads.steady_load import ConfluentLoad, Target
from tests.support.brokers.node import Node
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 10
SEED = int(os.environ.get("SEED", "1"))

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="brokers of ours"),
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(3000),
]


def test_no_record_is_lost_when_processes_of_a_node_are_killed(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    zookeeper = ZooKeeperServer(tmp_path / "zookeeper")
    keys = {**KEYS, "broker.processes.restart.backoff.ms": "50", "min.insync.replicas": "2"}
    keys["zookeeper.connect"] = zookeeper.address
    try:
        zookeeper.start()
        with Node(tmp_path / "node", keys, count=3) as node:
            node.launch()
            node.wait_until_serving()
            admin = AdminClient({"bootstrap.servers": node.bootstrap})
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(CALL_SECONDS)
            load = ConfluentLoad("load", node.bootstrap, Target(TOPIC, PARTITIONS, 300))
            load.start()
            try:
                for number in range(STEPS):
                    step = draw.choice((kill_a_broker, kill_the_supervisor, restart_all, kill_both))
                    print(f"step {number}: {step.__name__}", flush=True)
                    step(node, draw)
                    assert goes_on(load)
                assert wait_until(lambda: node.command("--status")[0] == 0, HEALED_SECONDS)
                check_nothing_is_lost_or_doubled(node, load)
            finally:
                load.stop()
            assert node.stop() == 0
            assert set(node.pids().values()) == {None}
    finally:
        zookeeper.kill()


def kill_a_broker(node: Node, draw: random.Random) -> None:
    node.kill_broker(draw.choice(node.ids))


def kill_the_supervisor(node: Node, draw: random.Random) -> None:
    before = {pid for pid in node.pids().values() if pid is not None}
    node.kill_supervisor()
    assert before <= set(node.pids().values())
    node.launch()


def kill_both(node: Node, draw: random.Random) -> None:
    node.kill_supervisor()
    node.kill_broker(draw.choice(node.ids))
    node.launch()


def restart_all(node: Node, draw: random.Random) -> None:
    node.wait_until_serving()
    code, said = node.command("--rolling-restart")
    assert code == 0, said
