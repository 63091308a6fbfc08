"""A group went back to the classic protocol, its coordinator died, and another loads its log.

The last member of the consumer protocol has left, and the others have not been told to rebalance:
nobody has its partitions. We rebalance the group when we load the log, whichever make wrote it.
Apache Kafka 4 loads it as a stable group.
"""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from coordinator import records
from protocol.messages.consumer_offsets_records import GroupMetadataValue
from tests.interop.conftest import patiently
from tests.interop.coordinators import test_consumer_group_logs as logs
from tests.interop.coordinators.consumer_heartbeats import TOPICS, Side, Step, create_topics
from tests.interop.workloads.member import MemberOptions
from tests.interop.workloads.member_process import MemberProcess, wait_until, wait_until_shared
from tests.support.brokers.apache import apache_4
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ours import ours
from tests.support.processes.children import freeze

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

TOPIC = "one"
PARTITIONS = TOPICS[TOPIC]
SESSION_MS = 120_000
"""Longer than a member is frozen."""
JOIN = Step("heartbeat", {**logs.JOINING, "member": "A"})
STAY = Step("heartbeat", {"member": "A", "epoch": ("known", 0), "owned": "told"})
LEAVE = Step("heartbeat", {"member": "A", "epoch": -1, "owned": "silent"})


class Scene(NamedTuple):
    """A broker of each make for one port, and the members of a group that speak as ever."""

    apache: BrokerProcess
    ours: BrokerProcess
    members: list[MemberProcess]

    def join(self, client: str) -> None:
        options = MemberOptions(client, self.ours.bootstrap, TOPIC, "g", "range", SESSION_MS)
        self.members.append(MemberProcess(options))

    @property
    def owned(self) -> list[int]:
        return sorted(partition for member in self.members for partition in member.assigned)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Return both brokers, stopped, with the same topics."""
    port = free_port()
    apache = apache_4(tmp_path / "apache", logs.SETTINGS, port=port)
    found = Scene(apache, ours(tmp_path / "ours", logs.SETTINGS, port=port), [])
    try:
        client = logs.started(apache)
        create_topics(client, by_java_hash=False)
        client.close()
        apache.stop()
        for name in (logs.OFFSETS, *(f"{t}-{i}" for t, n in TOPICS.items() for i in range(n))):
            shutil.copytree(apache.data_directory / name, found.ours.data_directory / name)
        yield found
    finally:
        for member in found.members:
            member.kill()
        found.ours.kill()
        apache.kill()


def downgrade(scene: Scene, writer: BrokerProcess) -> None:
    """Make the writer downgrade the group and die.

    The members are frozen then: otherwise a heartbeat might tell them to rebalance.
    """
    client = logs.started(writer)
    side = Side(client, create_topics(client, by_java_hash=False))  # they are there: it looks
    scene.join("confluent-kafka")
    scene.join("kafka-python")
    wait_until_shared(scene.members, PARTITIONS)
    side.take(JOIN)

    def is_shared() -> bool:
        assert not side.take(STAY)["error_code"]
        held = side.owned.get("A", {}).get(TOPIC, [])
        return len(held) == 2 and sorted(scene.owned + held) == list(range(PARTITIONS))

    wait_until(is_shared, scene.members)
    for member in scene.members:
        freeze(member._process.pid)
    side.take(LEAVE)
    writer.kill()
    client.close()
    *_, last = logs.stored(writer.data_directory / logs.OFFSETS / logs.SEGMENT)
    record = records.decode(*last)
    assert record is not None
    assert isinstance(record.value, GroupMetadataValue)
    assert record.value.leader in {member.member_id for member in record.value.members}


def described(admin: AdminClient) -> tuple[str, list[int]]:
    """The state of the group, and the partitions that are its members'."""
    shown = admin.describe_consumer_groups(["g"])["g"].result()
    held = [one.partition for each in shown.members for one in each.assignment.topic_partitions]
    return shown.state.name, sorted(held)


def committed(admin: AdminClient) -> list[int]:
    """The partitions whose only record was read, and the offset after it committed."""
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")])["g"].result()
    return sorted(each.partition for each in found.topic_partitions if each.offset == 1)


@pytest.mark.parametrize("makes", ["ours apache", "apache ours", "ours ours"])
def test_members_of_a_downgraded_group_go_on(scene: Scene, makes: str) -> None:
    """In a stable group the partitions of a member that left wait for the next to join."""
    writer, loader = (getattr(scene, make) for make in makes.split())
    state = "PREPARING_REBALANCING" if loader is scene.ours else "STABLE"
    downgrade(scene, writer)
    if writer is not loader:
        shutil.rmtree(loader.data_directory / logs.OFFSETS)
        shutil.copytree(writer.data_directory / logs.OFFSETS, loader.data_directory / logs.OFFSETS)
        (loader.data_directory / ".kafka_cleanshutdown").unlink(missing_ok=True)
    logs.started(loader).close()
    admin, left = AdminClient({"bootstrap.servers": loader.bootstrap}), scene.owned
    assert patiently(lambda: described(admin)) == (state, left)
    for member in scene.members:
        os.kill(member._process.pid, signal.SIGCONT)
    producer = Producer({"bootstrap.servers": loader.bootstrap})
    for partition in range(PARTITIONS):
        producer.produce(TOPIC, b"", partition=partition)
    producer.flush()
    if state == "STABLE":
        wait_until(lambda: committed(admin) == left, scene.members)
        assert described(admin) == (state, left)
        scene.join("confluent-kafka")
    wait_until_shared(scene.members, PARTITIONS)
    wait_until(lambda: committed(admin) == list(range(PARTITIONS)), scene.members)
