"""Kafka Streams with `group.protocol=streams`, and Apache's tool for such groups."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import create_topic, eventually, wait_for_coordinators
from tests.interop.workloads.word_count import (
    LINES_AT_ONCE,
    PARTITIONS,
    WORDS_PER_LINE,
    Options,
    WordCount,
)
from tests.support import jars
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

QUICK = {
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "2000",
    "group.streams.initial.rebalance.delay.ms": "100",
    "group.streams.assignment.interval.ms": "100",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
GROUP = "word-count"
INTERNAL_TOPICS = ("counts-repartition", "counts-changelog")
CHAPTER_WORDS = LINES_AT_ONCE * WORDS_PER_LINE
IN_TWO_THREADS = Options(protocol="streams", threads=2)


@pytest.fixture
def broker(new_broker: NewBroker, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker whose members heartbeat often, with the topics of the application."""
    process = new_broker(tmp_path / "broker", QUICK)
    process.start()
    try:
        wait_for_coordinators(process.bootstrap)
        admin = AdminClient({"bootstrap.servers": process.bootstrap, "log_level": 0})
        for topic in ("lines", "words"):
            create_topic(admin, topic, PARTITIONS)
        yield process
    finally:
        process.kill()


def test_application_counts_on_when_it_and_the_broker_are_killed(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    with (
        closing(
            WordCount(broker.bootstrap, tmp_path, Options(protocol="streams", threads=2))
        ) as counting,
        closing(Tools(jars.KAFKA_4)) as tools,
    ):
        counting.give(0)
        counting.wait_for(CHAPTER_WORDS)
        shown = described(tools, broker, "--state")
        assert "Stable" in shown
        members = described(tools, broker, "--members", "--verbose")
        for task in ("0:[0]", "0:[1]", "1:[0]", "1:[1]"):
            assert task in members, members
        counting.application.kill()
        counting.give(1)
        counting.wait_for(2 * CHAPTER_WORDS)
        broker.kill()
        broker.start()
        counting.give(2)
        counting.wait_for(3 * CHAPTER_WORDS)

        assert counting.has_counted_once(), counting.told
        server = ("--bootstrap-server", broker.bootstrap)
        assert GROUP in tools.check("streams-groups", *server, "--list").output
        refused = tools.run("streams-groups", *server, "--delete", "--group", GROUP)
        assert "not EMPTY" in refused.output + refused.errors, refused
        counting.application.kill()
        eventually(lambda: "Empty" in described(tools, broker, "--state"), 60.0)
        delete = ("--delete", "--group", GROUP, "--delete-all-internal-topics")
        deleted = tools.check("streams-groups", *server, *delete)
        assert "was successful" in deleted.output, deleted
        listed = tools.check("topics", *server, "--list").output
        assert not any(topic in listed for topic in INTERNAL_TOPICS), listed


@pytest.mark.slow
def test_instance_takes_over_with_its_copies_when_another_dies(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    with (
        closing(WordCount(broker.bootstrap, tmp_path, Options(protocol="streams"))) as counting,
        closing(Tools(jars.KAFKA_4)) as tools,
    ):
        copies = ("--add-config", "streams.num.standby.replicas=1")
        server = ("--bootstrap-server", broker.bootstrap)
        on_group = ("--alter", "--entity-type", "groups", "--entity-name", GROUP)
        tools.check("configs", *server, *on_group, *copies)
        other = counting.start_another()
        counting.give(0)
        counting.wait_for(CHAPTER_WORDS)

        def is_shared() -> bool:
            members = described(tools, broker, "--members")
            state = described(tools, broker, "--state")
            standby = members.count("STANDBY: 1:[0]") + members.count("STANDBY: 1:[1]")
            return "Stable" in state and standby == PARTITIONS

        eventually(is_shared, 60.0)
        other.kill()
        counting.give(1)
        counting.wait_for(2 * CHAPTER_WORDS)

        assert counting.has_counted_once(), counting.told


def described(tools: Tools, broker: BrokerProcess, *options: str) -> str:
    """The group, as Apache's tool shows it."""
    server = ("--bootstrap-server", broker.bootstrap)
    return tools.check("streams-groups", *server, "--describe", "--group", GROUP, *options).output
