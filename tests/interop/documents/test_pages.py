"""Commands and programs of the pages do what the pages say."""

from __future__ import annotations

import ast
import asyncio
import inspect
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from broker.testing import EmbeddedBroker, EmbeddedCluster
from tests.interop.conftest import against_apache, wait_for_coordinators
from tests.support import jars
from tests.support.brokers.broker_process import free_port
from tests.support.documents.console import SECONDS, Console
from tests.support.documents.pages import to_run
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(against_apache(), reason="it is about our own documentation"),
]

QUICK_START, CLUSTER, GROUPS, MESSAGING, OPERATIONS, MIGRATION, README = PAGES_THAT_RUN = (
    "docs/quick-start.md",
    "docs/cluster.md",
    "docs/groups.md",
    "docs/messaging.md",
    "docs/operations.md",
    "docs/migration.md",
    "README.md",
)
SERVER = "localhost:9092"
LOOK_UPS = "9405"


@pytest.fixture(scope="module")
def tools_of_today() -> Iterator[Tools]:
    """Return the newest of Apache Kafka's tools."""
    found = Tools(jars.KAFKA_4)
    yield found
    found.close()


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """Return a new broker, as the quick start has one, with look-ups by key and metrics."""
    ports = {"key.index.port": str(free_port()), "metrics.port": str(free_port())}
    with EmbeddedBroker(ports) as running:
        yield running


def console(tools: Tools, directory: Path, servers: str, **names: str) -> Console:
    return Console(tools, directory, {SERVER: servers, **names})


def run_programs(page: str, console: Console) -> str:
    """Run each Python block of a page as a program; return what all of them print."""
    printed = []
    for block in to_run(page, "python"):
        ended = subprocess.run(
            [sys.executable, "-c", console.named(block.text)],
            cwd=console.directory,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ended.returncode == 0, f"{block}: {ended.stderr}"
        printed.append(ended.stdout)
    return "".join(printed)


@pytest.mark.parametrize("page", [QUICK_START, README])
def test_first_records_go_through_the_broker(
    page: str, broker: EmbeddedBroker, tools_of_today: Tools, tmp_path: Path
) -> None:
    terminal = console(tools_of_today, tmp_path, broker.bootstrap_servers)
    for block in to_run(page, "console"):
        terminal.run(block)
    if page == QUICK_START:
        printed = run_programs(page, terminal)
        assert printed.splitlines() == ["0 hello", "1 hello from Python", "hello"]
    assert broker.records("greetings")[0].value == b"hello"


def test_a_topic_outlives_a_broker_as_the_page_shows(tools_of_today: Tools, tmp_path: Path) -> None:
    settings = {"min.insync.replicas": 2}
    with EmbeddedCluster(config=settings) as cluster:
        terminal = console(tools_of_today, tmp_path, cluster.bootstrap_servers)
        before, after = to_run(CLUSTER, "console")
        terminal.run(before)
        wait_for_coordinators(cluster.bootstrap_servers)  # as `make cluster` does

        cluster.kill(cluster.leader_of("walk", 2))

        for partition in range(3):
            cluster.leader_of("walk", partition)
        terminal.run(after)


def test_groups_of_all_kinds_are_used_as_the_page_says(
    broker: EmbeddedBroker, tools_of_today: Tools, tmp_path: Path
) -> None:
    broker.create_topic("orders")
    with closing(Producer({"bootstrap.servers": broker.bootstrap_servers})) as producer:
        producer.produce("orders", "one bicycle")
        assert producer.flush(20) == 0
    terminal = console(tools_of_today, tmp_path, broker.bootstrap_servers)

    assert run_programs(GROUPS, terminal).splitlines() == ["one bicycle", "one bicycle"]
    for block in to_run(GROUPS, "console"):
        terminal.run(block)


def test_delays_retries_and_look_ups_work_as_the_page_shows(
    broker: EmbeddedBroker, tools_of_today: Tools, tmp_path: Path
) -> None:
    port = broker.config["key.index.port"]
    at = f" --endpoint http://127.0.0.1:{port}"
    names = {f"127.0.0.1:{LOOK_UPS}": f"127.0.0.1:{port}"}
    names |= {name: name + at for name in ("-m broker.delivery list", "-m broker.key_index")}
    terminal = console(tools_of_today, tmp_path, broker.bootstrap_servers, **names)
    broker.create_topic("orders")
    broker.create_topic("billing.dlq")
    namespace: dict[str, Any] = {
        "Consumer": Consumer,
        "Producer": Producer,
        "servers": {"bootstrap.servers": broker.bootstrap_servers},
    }
    pieces = [*to_run(MESSAGING, "console"), *to_run(MESSAGING, "python")]
    for piece in sorted(pieces, key=lambda piece: piece.line):
        if piece.language == "console":
            terminal.run(piece)
        else:
            run_piece(piece.text, broker.bootstrap_servers, namespace)

    (reminder,) = [one for one in broker.records("orders") if one.key == b"4711"]
    assert dict(reminder.headers) == {"message-id": b"0198f3c2"}
    assert namespace["offsets"]


def run_piece(text: str, servers: str, namespace: dict[str, Any]) -> None:
    """Run a part of a program with the producer of the client that it is about."""
    if "await " in text:
        asyncio.run(_with_aiokafka(text, servers))
    elif "producer.send(" in text:
        with closing(KafkaProducer(bootstrap_servers=servers)) as namespace["producer"]:
            exec(text, namespace)
            namespace["producer"].flush(SECONDS)
    else:
        namespace["producer"] = Producer({"bootstrap.servers": servers})
        exec(text, namespace)
        assert namespace["producer"].flush(SECONDS) == 0


async def _with_aiokafka(text: str, servers: str) -> None:
    code = compile(text, "messaging", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        begun = eval(code, {"producer": producer})
        assert inspect.isawaitable(begun)
        await begun


def test_commands_for_running_brokers_work(
    broker: EmbeddedBroker, tools_of_today: Tools, tmp_path: Path
) -> None:
    terminal = console(tools_of_today, tmp_path, broker.bootstrap_servers)
    for page in (OPERATIONS, MIGRATION):
        for block in to_run(page, "console"):
            terminal.run(block)
