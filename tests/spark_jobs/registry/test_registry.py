"""The registry as a program: what keeps it from starting is told in one line."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.errors import EXIT_FAILED
from spark_jobs.registry.registry import main

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.process


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line that the program ends with."""
    assert main(arguments) == EXIT_FAILED
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line.removeprefix("error: ").strip()


def test_topic_that_would_lose_schemas_is_refused(
    servers: str, new_name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {
        NewTopic(new_name("short"), 1, 1, config={"cleanup.policy": "delete"}): (
            "has cleanup.policy=delete and would lose schemas; set it to compact"
        ),
        NewTopic(new_name("wide"), 2, 1, config={"cleanup.policy": "compact"}): (
            "has several partitions, a registry needs one"
        ),
    }
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([*refused]).values():
        made.result(60)
    for new, words in refused.items():
        line = told(capsys, "--bootstrap-servers", servers, "--topic", new.topic)
        assert line == f"--topic: {new.topic} {words}"


def test_port_in_use_is_told(
    servers: str, new_name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        where = ("--host", "127.0.0.1", "--port", port, "--topic", new_name("schemas"))
        line = told(capsys, "--bootstrap-servers", servers, *where)
    assert line == f"--host, --port: 127.0.0.1:{port}: address already in use"


def test_broker_that_is_away_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--bootstrap-servers", "127.0.0.1:1").startswith("no broker listens at ")
