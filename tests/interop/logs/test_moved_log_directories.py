"""Replicas that move to other log directories of their broker: by Apache's tool, and past kills."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from protocol.messages.log_dirs import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from tests.interop.clients import confluent
from tests.interop.clients.record import Sending, numbered_records
from tests.interop.conftest import create_topic, eventually
from tests.interop.logs.test_kill_under_load import (
    PARTITIONS,
    Load,
    all_records,
    check_nothing_is_lost_or_repeated,
)
from tests.interop.security.principals import Principal
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Tools

BEFORE = numbered_records(300, size=20_000)
"""Six megabytes: more than a throttled second moves."""
MEANWHILE = numbered_records(40, size=1000)
RATE = 500_000
TOPIC = "moving"
KILLS = 8
PADDING = bytes(300)

Dir = AlterReplicaLogDirsRequest.Dir


@dataclass(frozen=True)
class Mover:
    """An operator's actions with the tools."""

    tools: Tools
    bootstrap: str
    plan: Path

    @property
    def server(self) -> tuple[str, str]:
        return ("--bootstrap-server", self.bootstrap)

    def replicas(self) -> dict[str, tuple[bool, int]]:
        """Return, by directory, whether the replica is a future one, and its lag."""
        described = self.tools.check("log-dirs", "--describe", *self.server, "--topic-list", TOPIC)
        return {
            place["logDir"]: (partition["isFuture"], partition["offsetLag"])
            for each in json.loads(described.lines[-1])["brokers"]
            for place in each["logDirs"]
            for partition in place["partitions"]
        }

    def reassign(self, place: str, *options: str) -> str:
        """Return the output of kafka-reassign-partitions."""
        moving = {"topic": TOPIC, "partition": 0, "replicas": [0], "log_dirs": [place]}
        self.plan.write_text(json.dumps({"version": 1, "partitions": [moving]}))
        return self.tools.run(
            *("reassign-partitions", *self.server, *options),
            *("--reassignment-json-file", str(self.plan)),
        ).output


def test_a_throttled_move_is_described_and_survives_a_kill(tools: Tools, tmp_path: Path) -> None:
    places = {str(tmp_path / name) for name in ("one", "two")}
    broker = ours(tmp_path / "broker", {"log.dirs": ",".join(places)})
    mover = Mover(tools, broker.bootstrap, tmp_path / "plan.json")
    replicas = mover.replicas
    try:
        broker.start()
        tools.check("topics", "--create", *mover.server, "--topic", TOPIC, "--partitions", "1")
        confluent.produce(broker.bootstrap, TOPIC, BEFORE, Sending())
        (source,) = replicas()
        (target,) = places - {source}

        begun = mover.reassign(target, "--execute", "--replica-alter-log-dirs-throttle", str(RATE))
        assert f"Successfully started moving log directory to {target}" in begun
        eventually(lambda: len(replicas()) == 2)
        assert replicas()[source] == (False, 0)
        is_future, lag = replicas()[target]
        assert is_future
        assert 0 < lag <= len(BEFORE)
        assert "is still in progress" in mover.reassign(target, "--verify", "--preserve-throttles")

        broker.kill()
        broker.start()
        confluent.produce(broker.bootstrap, TOPIC, MEANWHILE, Sending())
        assert replicas()[target][0], "the throttle holds, and so does the move"
        tools.check(
            *("configs", "--alter", *mover.server, "--entity-type", "brokers"),
            *("--entity-name", "0"),
            *("--delete-config", "replica.alter.log.dirs.io.max.bytes.per.second"),
        )
        eventually(lambda: replicas() == {target: (False, 0)})

        verified = mover.reassign(target, "--verify")
        assert f"Reassignment of replica {TOPIC}-0-0 completed successfully." in verified
        confluent.produce(broker.bootstrap, TOPIC, MEANWHILE, Sending())
        expected = [one.value for one in [*BEFORE, *MEANWHILE, *MEANWHILE]]
        read = confluent.read(broker.bootstrap, TOPIC, len(expected))
        assert [one.value for one in read] == expected
    finally:
        broker.kill()


def places(broker: BrokerProcess) -> dict[tuple[int, bool], str]:
    """The directory of each partition's replica, and of its future one."""
    client = Principal(broker.port)
    answer = client.ask(DescribeLogDirsRequest(topics=None), 5)
    client.close()
    return {
        (partition.partition_index, partition.is_future_key): result.log_dir
        for result in answer.results
        for topic in result.topics
        if topic.name == TOPIC
        for partition in topic.partitions
    }


def move(broker: BrokerProcess, partitions: list[int], place: str) -> None:
    client = Principal(broker.port)
    moving = Dir(path=place, topics=[Dir.Topic(name=TOPIC, partitions=partitions)])
    client.ask(AlterReplicaLogDirsRequest(dirs=[moving]), 2)
    client.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_lost_or_repeated_when_moves_are_killed(tmp_path: Path, seed: int) -> None:
    directories = [str(tmp_path / name) for name in ("one", "two")]
    keys = {"log.dirs": ",".join(directories), "log.segment.bytes": str(1 << 20)}
    broker = ours(tmp_path / "broker", keys)
    chance = random.Random(seed)
    load = Load("load-1", broker.bootstrap, TOPIC, PADDING)
    try:
        broker.start()
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC, PARTITIONS)
        load.start()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.2, 0.6))
            for place in directories:
                drawn = [index for index in range(PARTITIONS) if chance.random() < 0.5]
                move(broker, drawn, place)
            time.sleep(chance.uniform(0, 0.3))
            broker.kill()
            broker.start()
        load.finish()
        move(broker, list(range(PARTITIONS)), directories[1])
        everywhere = {(index, False): directories[1] for index in range(PARTITIONS)}
        eventually(lambda: places(broker) == everywhere)
        check_nothing_is_lost_or_repeated(all_records(broker.bootstrap, TOPIC), [load])
        assert "moved" in broker.output_path.read_text()
    finally:
        broker.kill()
        load.finish()
