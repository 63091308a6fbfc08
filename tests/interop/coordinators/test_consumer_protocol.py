"""Stock clients with `group.protocol=consumer`: kafka-clients 4, librdkafka, Apache's tools."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.interop.clients.java import run_program
from tests.interop.conftest import create_topic, wait_for_coordinators
from tests.support import jars
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.assignment.interval.ms": "100",
}
PARTITIONS = 6
LIMIT_SECONDS = 60.0
TOPIC = "topic-1"


@pytest.fixture(scope="module")
def quick(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """A broker whose members heartbeat often, with a topic that has records."""
    process = new_broker(tmp_path_factory.mktemp("quick"), QUICK)
    process.start()
    try:
        wait_for_coordinators(process.bootstrap)
        create_topic(AdminClient({"bootstrap.servers": process.bootstrap}), TOPIC, PARTITIONS)
        producer = Producer({"bootstrap.servers": process.bootstrap})
        for number in range(10 * PARTITIONS):
            producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
        producer.flush()
        yield process
    finally:
        process.kill()


def member(broker: BrokerProcess, group: str, *topics: str, **more: str) -> Consumer:
    options: dict[str, Any] = {name.replace("_", "."): value for name, value in more.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **options,
        }
    )
    consumer.subscribe(list(topics or [TOPIC]))
    return consumer


def settle(*sizes: int, among: list[Consumer]) -> None:
    """Poll until the assignments have these sizes, in ascending order, and share nothing."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        for each in among:
            each.poll(0.05)
        owned = [{(p.topic, p.partition) for p in each.assignment()} for each in among]
        if sorted(map(len, owned)) == list(sizes) and len(set().union(*owned)) == sum(sizes):
            return
        assert time.monotonic() < deadline, owned


def test_java_consumers_share_and_commit(quick: BrokerProcess) -> None:
    said = run_program(jars.KAFKA_4, "ConsumerProtocol", [quick.bootstrap, TOPIC, str(PARTITIONS)])

    assert said.pop("stderr") is not None
    assert said == {
        "three": "ok",
        "two": "ok",
        "one": "ok",
        "pattern": "ok",
        "bad pattern": "InvalidRegularExpression",
        "static": "ok ok kept",
        "commits": f"{10 * PARTITIONS} {10 * PARTITIONS}",
    }


def test_librdkafka_members_come_and_go(quick: BrokerProcess) -> None:
    first, second = member(quick, "come"), member(quick, "come")
    settle(3, 3, among=[first, second])
    third = member(quick, "come", "^topic-.*")
    settle(2, 2, 2, among=[first, second, third])
    second.close()
    settle(3, 3, among=[first, third])
    third.close()
    settle(6, among=[first])
    first.close()


def test_static_member_of_librdkafka_keeps_its_partitions(quick: BrokerProcess) -> None:
    first = member(quick, "static", group_instance_id="one")
    second = member(quick, "static", group_instance_id="two")
    settle(3, 3, among=[first, second])
    owned = {each.partition for each in first.assignment()}
    first.close()
    again = member(quick, "static", group_instance_id="one")
    settle(3, 3, among=[again, second])

    assert {each.partition for each in again.assignment()} == owned
    again.close()
    second.close()


def test_tools_show_the_group(quick: BrokerProcess) -> None:
    server = ("--bootstrap-server", quick.bootstrap)
    one = member(quick, "shown")
    with closing(Tools(jars.KAFKA_4)) as tools, closing(one):
        settle(6, among=[one])
        listed = tools.check("consumer-groups", *server, "--list", "--type", "consumer")
        assert "shown" in listed.output
        on_group = ("consumer-groups", *server, "--describe", "--group", "shown")
        state = tools.check(*on_group, "--state", "--verbose")
        row = dict(zip(state.lines[-2].split()[-6:], state.lines[-1].split()[-6:], strict=True))
        assert "uniform" in state.lines[-1], state.output
        assert "Stable" in state.lines[-1], row
        members = tools.check(*on_group, "--members", "--verbose")
        assert f"{TOPIC}:0,1,2,3,4,5" in members.lines[-1].replace("(", ":"), members.output
        refused = tools.run("consumer-groups", *server, "--delete", "--group", "shown")
        assert "not empty" in refused.output + refused.errors
    with closing(Tools(jars.KAFKA_4)) as tools:
        deleted = tools.check("consumer-groups", *server, "--delete", "--group", "shown")
        assert "was successful" in deleted.output


@pytest.mark.parametrize("is_killed", [False, True])
def test_group_survives_the_broker(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory, is_killed: bool
) -> None:
    broker = new_broker(tmp_path_factory.mktemp("survivor"), QUICK)
    broker.start()
    try:
        wait_for_coordinators(broker.bootstrap)
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC, PARTITIONS)
        first, second = member(broker, "survivors"), member(broker, "survivors")
        settle(3, 3, among=[first, second])
        epoch = _epoch(broker)
        owned = sorted(each.partition for each in first.assignment())
        if is_killed:
            broker.kill()
        else:
            broker.stop()
        broker.start()
        wait_for_coordinators(broker.bootstrap)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            first.poll(0.05)
            second.poll(0.05)

        assert sorted(each.partition for each in first.assignment()) == owned
        assert _epoch(broker) == epoch
        second.close()
        settle(6, among=[first])
        first.close()
    finally:
        broker.kill()


def _epoch(broker: BrokerProcess) -> int:
    """The group's epoch, as Apache's tool shows it."""
    with closing(Tools(jars.KAFKA_4)) as tools:
        shown = tools.check(
            *("consumer-groups", "--bootstrap-server", broker.bootstrap, "--describe"),
            *("--group", "survivors", "--state", "--verbose"),
        )
    names, values = shown.lines[-2], shown.lines[-1]
    return int(values[names.index("GROUP-EPOCH") :].split()[0])
