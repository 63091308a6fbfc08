"""Nodes of Apache Kafka 4.4 start on directories that `broker.storage` formatted."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

from broker.storage.__main__ import main
from protocol.uuids import draw_uuid, to_base64
from tests.support import jars
from tests.support.brokers.apache import PROTOCOL_MAP, STANDALONE
from tests.support.brokers.broker_process import BrokerProcess, free_port, write_properties
from tests.support.java_command import SHORT_LIVED_FLAGS, java_command
from tests.support.processes.waiting import wait_until
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.java, pytest.mark.slow]

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
START_SECONDS = 60
ALICE = "SCRAM-SHA-512=[name=alice,password=alice-secret]"


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with closing(Tools(jars.KAFKA_4)) as found:
        yield found


def node(
    directory: Path, roles: str, node_id: int, controller: int, **more: str
) -> tuple[BrokerProcess, str]:
    """A node that is not formatted, whose quorum is at one port; and its property file."""
    port = free_port()
    process = BrokerProcess(name=f"node {node_id}", command=[], directory=directory, port=port)
    listeners = {
        "broker": f"PLAINTEXT://127.0.0.1:{port}",
        "controller": f"CONTROLLER://127.0.0.1:{controller}",
    }
    config = write_properties(
        directory / "server.properties",
        {
            "process.roles": roles,
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": PROTOCOL_MAP,
            "listeners": ",".join(listeners[role] for role in roles.split(",")),
            "log.dirs": str(process.data_directory),
            **STANDALONE,
            **{key.replace("_", "."): value for key, value in more.items()},
        },
    )
    process.command = java_command(
        jars.KAFKA_4, "kafka.Kafka", str(config), flags=SHORT_LIVED_FLAGS
    )
    return process, str(config)


def formatted(config: str, *arguments: str) -> None:
    assert main(["format", "--config", config, "--cluster-id", CLUSTER, *arguments]) == 0


@pytest.mark.parametrize("quorum", ["static", "standalone", "initial controllers"])
def test_combined_node_starts_with_what_was_formatted(
    quorum: str, tools: Tools, tmp_path: Path
) -> None:
    controller, directory_id = free_port(), to_base64(draw_uuid(os.urandom))
    servers = {"controller_quorum_bootstrap_servers": f"127.0.0.1:{controller}"}
    voters = {"controller_quorum_voters": f"1@127.0.0.1:{controller}"}
    more = voters if quorum == "static" else servers
    process, config = node(tmp_path, "broker,controller", 1, controller, **more)
    flags = {
        "static": (),
        "standalone": ("--standalone",),
        "initial controllers": ("-I", f"1@127.0.0.1:{controller}:{directory_id}"),
    }[quorum]
    formatted(config, *flags, "-r", "4.3", "-f", "share.version=0", "-S", ALICE)
    try:
        process.start()
        levels = finalised_levels(tools, process.bootstrap)
        server = ("--bootstrap-server", process.bootstrap)
        status = tools.check("metadata-quorum", *server, "describe", "--status").output
        users = tools.check("configs", *server, "--describe", "--entity-type", "users").output
    finally:
        process.kill()

    assert levels["metadata.version"] == "4.3-IV0"
    assert levels["kraft.version"] == ("0" if quorum == "static" else "1")
    assert (levels["share.version"], levels["group.version"]) == ("0", "1")
    assert re.search(rf"ClusterId:\s+{CLUSTER}", status)
    if quorum == "initial controllers":
        assert directory_id in status
    assert re.search(r"user-principal 'alice'.*SCRAM-SHA-512=iterations=4096", users)


def finalised_levels(tools: Tools, bootstrap: str) -> dict[str, str]:
    """Finalised level of each feature, as the tool of Apache Kafka shows it."""
    said = tools.check("features", "--bootstrap-server", bootstrap, "describe").lines
    pattern = re.compile(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)\s")
    found = (match for match in map(pattern.search, said) if match is not None)
    return {match[1]: match[2] for match in found}


def test_broker_and_second_controller_join_a_standalone_controller(
    tools: Tools, tmp_path: Path
) -> None:
    port = free_port()
    servers = {"controller_quorum_bootstrap_servers": f"127.0.0.1:{port}"}
    first, first_file = node(tmp_path / "1", "controller", 1, port, **servers)
    second, second_file = node(tmp_path / "2", "controller", 2, free_port(), **servers)
    broker, broker_file = node(tmp_path / "3", "broker", 3, port, **servers)
    formatted(first_file, "-s")
    formatted(second_file, "-N")
    formatted(broker_file)
    with ExitStack() as stack:
        for process in (first, second, broker):
            stack.callback(process.kill)
        first.launch()
        second.launch()
        broker.start()
        server = ("--bootstrap-server", broker.bootstrap)

        def observers() -> str:
            ran = tools.run("metadata-quorum", *server, "describe", "--status")
            found = re.search(r"CurrentObservers:(.*)", ran.output)
            return "" if found is None else found[1]

        assert wait_until(lambda: '"id": 2' in observers(), START_SECONDS), observers()
        assert '"id": 3' in observers()
        assert finalised_levels(tools, broker.bootstrap)["metadata.version"] == "4.4-IV2"
