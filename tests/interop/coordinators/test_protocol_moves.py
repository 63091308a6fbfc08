"""A group moves from the classic protocol to the consumer protocol and back, with stock clients.

Its members are librdkafka's, with `group.protocol` of either kind, and Apache's tool looks at it.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition

from tests.interop.coordinators.test_consumer_protocol import PARTITIONS, member, quick, settle
from tests.support import jars
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Consumer

    from tests.support.brokers.broker_process import BrokerProcess

__all__ = ["quick"]


@pytest.fixture(scope="module")
def tools_4() -> Iterator[Tools]:
    tools = Tools(jars.KAFKA_4)
    yield tools
    tools.close()


def kind_of(tools: Tools, broker: BrokerProcess, group: str) -> str:
    """The type of the group, as Apache's tool lists it."""
    listed = tools.check(
        *("consumer-groups", "--bootstrap-server", broker.bootstrap, "--list", "--type")
    )
    [kind] = re.findall(rf"^{group}\s+(\S+)", listed.output, re.MULTILINE)
    return str(kind).lower()


def commit(consumer: Consumer) -> None:
    """Commit for all that it owns; raises unless the coordinator takes it."""
    offsets = [TopicPartition(each.topic, each.partition, 5) for each in consumer.assignment()]
    committed = consumer.commit(offsets=offsets, asynchronous=False)
    assert [each.error for each in committed] == [None] * len(offsets)


@pytest.mark.slow
def test_members_change_their_protocol_one_by_one_and_back(
    quick: BrokerProcess, tools_4: Tools
) -> None:
    group = "moving"

    def start(stack: ExitStack, protocol: str) -> Consumer:
        more = {} if protocol == "consumer" else {"session_timeout_ms": "6000"}
        consumer = member(quick, group, group_protocol=protocol, **more)
        stack.callback(consumer.close)
        return consumer

    with ExitStack() as stack:
        one, two = (start(stack, "classic") for _ in range(2))
        settle(3, 3, among=[one, two])
        assert kind_of(tools_4, quick, group) == "classic"

        three = start(stack, "consumer")
        settle(2, 2, 2, among=[one, two, three])
        assert kind_of(tools_4, quick, group) == "consumer"
        for consumer in (one, three):
            commit(consumer)

        one.close()
        four = start(stack, "consumer")
        settle(2, 2, 2, among=[two, three, four])
        two.close()
        settle(3, 3, among=[three, four])
        assert kind_of(tools_4, quick, group) == "consumer"

        five = start(stack, "classic")
        settle(2, 2, 2, among=[three, four, five])
        three.close()
        four.close()
        settle(PARTITIONS, among=[five])
        assert kind_of(tools_4, quick, group) == "classic"
        commit(five)
