"""Tools and options that Apache Kafka 3.9 does not have."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients import confluent
from tests.interop.clients.record import Sending, numbered_records
from tests.support import jars
from tests.support.brokers.broker_process import write_properties
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.interop.conftest import NewName, NewTopicFunction

RECORDS = 12
CONNECT_TOPICS = {"config": (1, "compact"), "offset": (25, "compact"), "status": (5, "compact")}
"""Partitions and cleanup policy of what Connect keeps, by its kind."""


@pytest.fixture(scope="module")
def newest() -> Iterator[Tools]:
    """Tools of the newest version."""
    with closing(Tools(jars.KAFKA_4)) as tools:
        yield tools


@pytest.fixture
def server(bootstrap: str) -> tuple[str, str]:
    return ("--bootstrap-server", bootstrap)


def test_groups_are_listed_with_type_and_protocol(
    newest: Tools,
    server: tuple[str, str],
    bootstrap: str,
    new_topic: NewTopicFunction,
    new_group: Callable[[], str],
) -> None:
    topic, group = new_topic(), new_group()
    confluent.produce(bootstrap, topic, numbered_records(1), Sending())
    newest.check(
        *("console-consumer", *server, "--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", "1", "--timeout-ms", "20000"),
    )

    rows = [line.split() for line in newest.check("groups", *server, "--list").lines]
    consumers = newest.check("groups", *server, "--list", "--consumer").output.split()
    shares = newest.check("groups", *server, "--list", "--share").output.split()

    assert [group, "Classic", "consumer"] in rows
    assert group in consumers
    assert group not in shares


@pytest.mark.parametrize("distribution", ["range", "random"])
def test_performance_test_gives_records_keys(
    newest: Tools,
    server: tuple[str, str],
    bootstrap: str,
    new_topic: NewTopicFunction,
    distribution: str,
) -> None:
    topic = new_topic()

    newest.check(
        *("producer-perf-test", *server, "--topic", topic, "--num-records", str(RECORDS)),
        *("--record-size", "10", "--throughput", "-1", "--random-seed", "7"),
        *("--record-key-range", "4", "--key-distribution", distribution),
    )

    keys = [int(record.key or b"") for record in confluent.read(bootstrap, topic, RECORDS)]
    if distribution == "range":
        assert keys == [number % 4 for number in range(RECORDS)]
    assert set(keys) <= set(range(4))


def test_internal_topics_of_connect_are_created(
    newest: Tools, server: tuple[str, str], bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    topics = {kind: new_name(f"connect-{kind}") for kind in CONNECT_TOPICS}
    keys = {"bootstrap.servers": bootstrap, "group.id": new_name("connect")}
    for name in ("key.converter", "value.converter"):
        keys[name] = "org.apache.kafka.connect.storage.StringConverter"
    for kind, topic in topics.items():
        keys |= {f"{kind}.storage.topic": topic, f"{kind}.storage.replication.factor": "1"}
    config = write_properties(tmp_path / "worker.properties", keys)

    for _ in ("created", "there already"):
        newest.check("connect-internal-topics", "create", "--worker-config", str(config))

    for kind, (partitions, policy) in CONNECT_TOPICS.items():
        shown = newest.check("topics", *server, "--describe", "--topic", topics[kind]).output
        assert f"PartitionCount: {partitions}" in shown
        assert f"cleanup.policy={policy}" in shown
