"""The broker under test, started once, and names that no two tests share."""

from __future__ import annotations

import os
import time
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support import jars
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.brokers.trio import Trio
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

    NewBroker = Callable[..., BrokerProcess]
    NewName = Callable[[str], str]
    NewTopicFunction = Callable[..., str]

Answer = TypeVar("Answer")

ADMIN_TIMEOUT_SECONDS = 120.0
TEST_TIMEOUT_SECONDS = 600
OFFSETS_PARTITIONS = 50
STARTING = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError._DESTROY_BROKER,
}
"""Answers that a client repeats its request on; the last is librdkafka's own, when one is gone."""

SHORT_SESSIONS = {
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""A dead member is missed after a second or two instead of six, and so is a late transaction."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all in this directory; give what names no time of its own enough for a JVM."""
    here = os.path.dirname(__file__)  # noqa: PTH120
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.interop)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_SECONDS))


def against_apache() -> bool:
    """Say whether the tests run against Apache Kafka instead of our broker."""
    return os.environ.get("AGAINST", "ours") == "apache"


@pytest.fixture(scope="session")
def new_broker() -> NewBroker:
    """Build a broker of the make under test: `new_broker(directory, properties)`."""
    return apache_4 if against_apache() else ours


@pytest.fixture(scope="session")
def broker(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """Return the broker that most tests share; it must outlive all of them."""
    process = new_broker(tmp_path_factory.mktemp("broker"), SHORT_SESSIONS)
    process.start()
    try:
        wait_for_coordinators(process.bootstrap)
        yield process
        assert process.is_running(), f"the broker died:\n{process.output_tail()}"
        process.stop()
    finally:
        process.kill()


@pytest.fixture(scope="session")
def shared_trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Return three brokers in a cluster; `trio` has them whole."""
    three = Trio(tmp_path_factory.mktemp("trio"))
    try:
        yield three
    finally:
        three.kill()


@pytest.fixture
def trio(shared_trio: Trio) -> Trio:
    """Return three brokers that run, in sync, and may be killed."""
    shared_trio.heal()
    return shared_trio


@pytest.fixture(scope="session")
def bootstrap(broker: BrokerProcess) -> str:
    """Return the shared broker's address."""
    return broker.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    """Return an admin client of the shared broker."""
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture(scope="session")
def new_name() -> NewName:
    """Return an unused name: `new_name("orders")`."""
    numbers = count(1)
    return lambda stem: f"{stem}-{next(numbers)}"


@pytest.fixture
def new_topic(admin: AdminClient, new_name: NewName) -> NewTopicFunction:
    """Create a topic and return its name: `new_topic(partitions=3, **{"retention.ms": "1"})`."""

    def create(partitions: int = 1, **config: str) -> str:
        name = new_name("topic")
        create_topic(admin, name, partitions, config)
        return name

    return create


@pytest.fixture
def new_group(new_name: NewName) -> Callable[[], str]:
    """Return an unused group id."""
    return lambda: new_name("group")


def wait_for_coordinators(bootstrap: str) -> None:
    """Create `__consumer_offsets` and wait until every partition of it is loaded.

    confluent-kafka 2.16.1 ends the whole process where a group's answer is NOT_COORDINATOR.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for number in range(OFFSETS_PARTITIONS):
        # Java hashes of strings that end in consecutive characters are consecutive.
        group = "no-such-group-" + chr(ord("0") + number)
        eventually(lambda: _is_answered(admin, group))  # noqa: B023


def _is_answered(admin: AdminClient, group: str) -> bool:
    try:
        admin.delete_consumer_groups([group])[group].result(ADMIN_TIMEOUT_SECONDS)
    except KafkaException as refused:
        return bool(refused.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND)
    return True


def create_topic(
    admin: AdminClient,
    name: str,
    partitions: int,
    config: dict[str, str] | None = None,
    replicas: int = 1,
) -> None:
    """Create a topic and wait until every partition has a leader.

    A KRaft broker says that a topic is created a moment before it serves it.
    """
    topic = NewTopic(name, partitions, replicas, config=config or {})
    admin.create_topics([topic])[name].result(ADMIN_TIMEOUT_SECONDS)
    eventually(lambda: is_served(admin, name, partitions))


def eventually(condition: Callable[[], bool], seconds: float = ADMIN_TIMEOUT_SECONDS) -> None:
    """Wait until `condition` holds: for what a KRaft broker's metadata shows a moment late."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def patiently(call: Callable[[], Answer]) -> Answer:
    """Return what `call` returns, trying again while the broker still takes up its partitions."""
    deadline = time.monotonic() + ADMIN_TIMEOUT_SECONDS
    while True:
        try:
            return call()
        except KafkaException as refused:
            if refused.args[0].code() not in STARTING or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def is_served(admin: AdminClient, name: str, partitions: int) -> bool:
    """Say whether the topic is known with that many partitions, all with a leader."""
    known = admin.list_topics(name, ADMIN_TIMEOUT_SECONDS).topics[name].partitions.values()
    return len(known) == partitions and all(one.leader >= 0 for one in known)


@pytest.fixture(
    scope="session",
    params=[jars.KAFKA_3, pytest.param(jars.KAFKA_4_3, marks=pytest.mark.slow), jars.KAFKA_4],
)
def tools(request: pytest.FixtureRequest) -> Iterator[Tools]:
    """Return Kafka's tools, of each version in turn."""
    tools = Tools(request.param)
    yield tools
    tools.close()


@pytest.fixture(scope="session")
def tools_3() -> Iterator[Tools]:
    """Return the tools of the last version that shares our directory layout."""
    tools = Tools(jars.KAFKA_3)
    yield tools
    tools.close()


@pytest.fixture
def own_broker(new_broker: NewBroker, tmp_path: Path) -> Iterator[BrokerProcess]:
    """Return a broker, not yet started, that only this test uses and may break."""
    process = new_broker(tmp_path / "own-broker", SHORT_SESSIONS)
    yield process
    process.kill()
