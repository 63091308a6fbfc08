"""A broker whose process may open few files: many clients, and what is kept for the logs."""

from __future__ import annotations

import re
import resource
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.log_dirs import DescribeLogDirsRequest
from protocol.messages.topics import CreateTopicsRequest
from tests.broker.handlers.data_broker import (
    fetch_request,
    offsets,
    produce_request,
    records,
    wanted,
)
from tests.interop.conftest import against_apache
from tests.support.brokers.ours import ours
from tests.support.wire import (
    ConnectionClosedError,
    RawConnection,
    api_versions_request,
    request_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.skipif(against_apache(), reason="it is our broker's descriptors")

TOPIC = "flights"
PARTITIONS = 120
"""More than a broker keeps open that may open few files."""
CLIENTS = 2000
STRANGERS = 400
FEW = 256
PRODUCE_VERSION = 3
FETCH_VERSION = 4
TIMEOUT_SECONDS = 120.0
LARGE = bytes(100_000)
"""Batch large enough to be sent from the file, for which a connection gets a second descriptor."""


@pytest.fixture(autouse=True)
def many_files() -> Iterator[int]:
    """Let this process have the other ends of all connections; return the hard limit."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = limits[1]
    if hard < CLIENTS * 3:
        pytest.skip(f"{hard} files are all that a process may open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker with small indexes, so that its directory is."""
    process = ours(tmp_path, {"log.index.size.max.bytes": "10000"})
    yield process
    process.kill()


def limit(broker: BrokerProcess, ulimit: str) -> None:
    """Start the broker in a shell with this limit of open files."""
    broker.command = ["bash", "-c", f'ulimit {ulimit} && exec "$@"', "bash", *broker.command]


def connect(broker: BrokerProcess, on_exit: ExitStack) -> RawConnection:
    return on_exit.enter_context(RawConnection.open(broker.port, TIMEOUT_SECONDS))


def ask(connection: RawConnection, request: Request, version: int) -> Any:
    cls = type(request)
    head = request_header(cls.API_KEY, version)
    return cls.RESPONSE.decode(version, connection.ask(head + request.encode(version))[4:])


def create(connection: RawConnection) -> None:
    topic = CreateTopicsRequest.Topic(
        name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[]
    )
    response = ask(connection, CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 4)
    assert response.topics[0].error_code == ErrorCode.NONE


def produce(connection: RawConnection, value: bytes = b"v") -> set[ErrorCode]:
    """Append a record to each partition; returns what was answered."""
    batches: dict[Any, bytes | None] = {
        (TOPIC, index): records(value=value) for index in range(PARTITIONS)
    }
    response = ask(connection, produce_request(batches, PRODUCE_VERSION), PRODUCE_VERSION)
    return {
        ErrorCode(answer.error_code)
        for topic in response.responses
        for answer in topic.partition_responses
    }


def read(connection: RawConnection, index: int) -> list[int]:
    """Offsets of all records of a partition."""
    found: list[int] = []
    while True:
        request = fetch_request(wanted(TOPIC, index, len(found)))
        (partition,) = ask(connection, request, FETCH_VERSION).responses[0].partitions
        assert partition.error_code == ErrorCode.NONE
        more = offsets(partition)
        if not more:
            return found
        found += more


def serves(connection: RawConnection) -> bool:
    """Return whether the broker answers, and has not hung up."""
    try:
        connection.ask(api_versions_request())
    except (ConnectionClosedError, ConnectionResetError, BrokenPipeError):
        return False
    return True


def said(broker: BrokerProcess) -> str:
    return broker.output_path.read_text(encoding="utf-8")


def no_directory_failed(broker: BrokerProcess, connection: RawConnection) -> None:
    results = ask(connection, DescribeLogDirsRequest(topics=None), 1).results
    assert [result.error_code for result in results] == [ErrorCode.NONE]
    assert "Traceback" not in said(broker)
    assert "offline" not in said(broker)


@pytest.mark.slow
def test_two_thousand_clients_of_a_broker_in_a_default_shell(
    broker: BrokerProcess, many_files: int
) -> None:
    limit(broker, "-Sn 1024")
    broker.start()
    with ExitStack() as on_exit:
        clients = [connect(broker, on_exit) for _ in range(CLIENTS)]
        assert all(serves(client) for client in clients)
        create(clients[0])
        assert produce(clients[0], LARGE) == {ErrorCode.NONE}
        for number, client in enumerate(clients):
            assert read(client, number % PARTITIONS) == [0]
        assert produce(clients[-1]) == {ErrorCode.NONE}
        assert f"open files: limit {many_files}, 1024 at start; " in said(broker)
        no_directory_failed(broker, clients[0])
    assert broker.stop() == 0


def test_connections_are_refused_before_files_run_out_and_producing_goes_on(
    broker: BrokerProcess,
) -> None:
    unlimited = broker.command
    limit(broker, f"-n {FEW}")
    broker.start()
    with ExitStack() as on_exit:
        producers = [connect(broker, on_exit) for _ in range(10)]
        create(producers[0])
        assert produce(producers[0]) == {ErrorCode.NONE}
        with ExitStack() as strangers_leave:
            strangers = [connect(broker, strangers_leave) for _ in range(STRANGERS)]
            served = sum(serves(stranger) for stranger in strangers)
            assert 20 < served < FEW
            for producer in producers:
                assert produce(producer) == {ErrorCode.NONE}
            assert read(producers[0], PARTITIONS - 1) == list(range(11))
        no_directory_failed(broker, producers[0])
        assert serves(connect(broker, on_exit))
        assert produce(producers[-1]) == {ErrorCode.NONE}
    assert len(re.findall("connection refused: ", said(broker))) <= 2
    assert broker.stop() == 0

    broker.command = unlimited
    broker.start()
    with ExitStack() as on_exit:
        reader = connect(broker, on_exit)
        for index in range(PARTITIONS):
            assert read(reader, index) == list(range(12))
    assert "recovered" not in said(broker)
