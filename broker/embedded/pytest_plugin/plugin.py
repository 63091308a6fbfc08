"""Fixtures `kafka_broker`, `kafka_cluster`, `kafka_topic`, `kafka_admin`, and the marker `kafka`.

A broker lives for the session, and so does a cluster; one required by a marker is started before
the first such test and stopped after the last in a row. Under xdist each worker has its own.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from broker.embedded.pytest_plugin.plain_imports import PlainImports
from broker.embedded.pytest_plugin.wanted import (
    MARKER,
    TOPIC_OPTIONS,
    Wanted,
    add_options,
    wanted_by_all,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from broker.embedded.cluster.embedded_cluster import EmbeddedCluster
    from broker.embedded.embedded_broker import EmbeddedBroker

SERVERS = ("kafka_broker", "kafka_cluster")
ON_A_SERVER = ("kafka_topic", "kafka_admin")
SECTION = "Kafka broker log"
LINES_SHOWN = 200
_HIDDEN: Any = getattr(pytest, "HIDDEN_PARAM", "kafka")
_numbers = itertools.count(1)
_lines_before = pytest.StashKey[dict[str, str | None]]()
_running = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add those of `wanted`."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and exempt the modules of the broker from rewriting."""
    imports = PlainImports(config.pluginmanager.rewrite_hook)
    imports.install()
    config.add_cleanup(imports.remove)
    text = (
        "kafka(config, brokers, storage, isolation, security, partitions, topic_config): the "
        "broker, cluster and topic that the fixtures give this test"
    )
    config.addinivalue_line("markers", text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise marked tests with the broker they want."""
    names = metafunc.fixturenames
    marks = list(metafunc.definition.iter_markers(MARKER))
    if not marks:
        return
    wanted = _marked(metafunc, marks)
    if not set(names) & set(SERVERS) and set(names) & set(ON_A_SERVER):
        names.append(_server_name(names, marks))
    for name in SERVERS:
        if name in names and wanted != wanted_by_all(metafunc.config):
            metafunc.parametrize(name, [wanted], ids=[_HIDDEN], indirect=True, scope="session")


def _marked(metafunc: pytest.Metafunc, marks: list[pytest.Mark]) -> Wanted:
    """Broker wanted by the markers of a test. Raises UsageError, which names the test."""
    wanted = wanted_by_all(metafunc.config)
    try:
        for mark in reversed(marks):  # the closest one has the last word
            wanted = wanted.marked(mark)
    except pytest.UsageError as error:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {error}") from None
    return wanted


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """A broker, `broker.testing.EmbeddedBroker`."""
    from broker.embedded.embedded_broker import EmbeddedBroker  # noqa: PLC0415

    wanted: Any = _wanted(request)
    config = dict(wanted.config)
    with (
        EmbeddedBroker(
            config,
            storage=wanted.storage,
            isolation=wanted.isolation,
            security=wanted.security,
        ) as broker,
        _known(request, "kafka_broker", broker),
    ):
        yield broker


@pytest.fixture(scope="session")
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    """Three brokers, or the wanted number, as `broker.testing.EmbeddedCluster`."""
    from broker.embedded.cluster.embedded_cluster import EmbeddedCluster  # noqa: PLC0415

    wanted: Any = _wanted(request)
    with (
        EmbeddedCluster(
            wanted.brokers,
            dict(wanted.config),
            storage=wanted.storage,
            security=wanted.security,
        ) as cluster,
        _known(request, "kafka_cluster", cluster),
    ):
        yield cluster


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic that this test alone has; on `kafka_cluster` if it uses that."""
    server = _server(request)
    said: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers(MARKER))):
        said.update({name: mark.kwargs[name] for name in TOPIC_OPTIONS if name in mark.kwargs})
    name = f"{re.sub('[^a-zA-Z0-9._-]+', '-', request.node.name)[:100]}-{next(_numbers)}"
    server.create_topic(name, said.get("partitions", 1), config=said.get("topic_config"))
    yield name
    server.delete_topic(name)


@pytest.fixture
def kafka_admin(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An admin client: confluent-kafka's, or else kafka-python's."""
    server = _server(request)
    if find_spec("confluent_kafka") is not None:
        yield import_module("confluent_kafka.admin").AdminClient(server.client_config)
    elif find_spec("kafka") is not None:
        client = import_module("kafka").KafkaAdminClient(**server.kafka_python_config)
        yield client
        client.close()
    else:
        pytest.fail("kafka_admin needs confluent-kafka or kafka-python, and neither is installed")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget the requests that brokers have recorded, and note the ends of their logs."""
    before = item.stash[_lines_before] = {}
    for name, server in item.config.stash.get(_running, {}).items():
        if not server.is_ours:  # in a fork of pytest's own process
            continue
        before[name] = _last(server.log_lines)
        for broker in getattr(server, "brokers", [server]):
            if broker.is_running:
                broker.requests.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Have the next test find brokers that are well: up, without faults, with room."""
    for server in _servers_of(item).values():
        server.restore()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show the broker's log of the time of a test that fails."""
    report: Any = yield
    if report.failed:
        before = item.stash.get(_lines_before, {})
        for name, server in _servers_of(item).items():
            shown = _since(server.log_lines, before.get(name))[-LINES_SHOWN:]
            if shown:
                report.sections.append((f"{SECTION} ({name})", "\n".join(shown)))
    return report


@contextlib.contextmanager
def _known(request: pytest.FixtureRequest, name: str, server: object) -> Iterator[None]:
    """Make a server known to the hooks above while it runs."""
    running = request.config.stash.setdefault(_running, {})
    running[name] = server
    yield
    del running[name]


def _wanted(request: pytest.FixtureRequest) -> Wanted:
    found: Wanted = getattr(request, "param", None) or wanted_by_all(request.config)
    return found


def _server(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - a broker or a cluster
    marks = list(request.node.iter_markers(MARKER))
    return request.getfixturevalue(_server_name(request.fixturenames, marks))


def _server_name(names: Sequence[str], marks: list[pytest.Mark]) -> str:
    """Server of a test's topic: the test's own, or the one its markers imply."""
    broker, cluster = SERVERS
    if cluster in names or broker in names:
        return cluster if cluster in names else broker
    return cluster if any("brokers" in mark.kwargs for mark in marks) else broker


def _servers_of(item: pytest.Item) -> Mapping[str, Any]:
    arguments: Mapping[str, Any] = getattr(item, "funcargs", {})
    servers = {name: arguments[name] for name in SERVERS if name in arguments}
    return {name: server for name, server in servers.items() if server.is_ours}


def _last(lines: list[str]) -> str | None:
    return lines[-1] if lines else None


def _since(lines: list[str], last: str | None) -> list[str]:
    """The lines after `last`; all of them if it is missing."""
    for index in range(len(lines) - 1, -1, -1):
        if lines[index] == last:
            return lines[index + 1 :]
    return lines
