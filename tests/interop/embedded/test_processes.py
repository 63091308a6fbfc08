"""Forks of a process with a broker, and processes that end without a word."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest

from broker.embedded.machine import own_directory
from broker.testing import EmbeddedBroker, EmbeddedBrokerError, EmbeddedCluster
from tests.interop.embedded.conftest import produced
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

FORK = get_context("fork")


@pytest.fixture
def started() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def test_a_fork_is_a_client_of_the_broker(started: EmbeddedBroker) -> None:
    started.create_topic("orders")

    child = FORK.Process(target=produced, args=(started.bootstrap_servers, "orders", b"one"))
    child.start()
    child.join(30)

    assert child.exitcode == 0
    assert [record.value for record in started.records("orders")] == [b"one"]


def _tell_and_stop(broker: EmbeddedBroker | EmbeddedCluster, way: Connection) -> None:
    try:
        broker.create_topic("orders")
    except EmbeddedBrokerError as error:
        way.send(str(error))
    broker.stop()


@pytest.mark.parametrize("kind", [EmbeddedBroker, EmbeddedCluster])
def test_a_fork_cannot_control_the_broker_or_take_it_down(
    kind: type[EmbeddedBroker | EmbeddedCluster],
) -> None:
    ours, theirs = FORK.Pipe()
    with kind() as running:
        child = FORK.Process(target=_tell_and_stop, args=(running, theirs))
        child.start()
        assert ours.poll(30)
        assert "this one is its fork" in ours.recv()
        child.join(30)

        assert child.exitcode == 0
        running.create_topic("orders")
        assert produced(running.bootstrap_servers, "orders", b"one") == [0]


def test_a_fork_holds_no_connection_and_no_port_of_a_broker_that_is_killed(
    started: EmbeddedBroker,
) -> None:
    host, port = started.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as client:
        _ = started.topics()  # by now it is accepted
        go_on = FORK.Event()
        child = FORK.Process(target=go_on.wait, args=(60,))
        child.start()

        started.kill()

        assert client.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), timeout=5)
        assert child.is_alive()
        go_on.set()
        child.join(30)
        assert child.exitcode == 0


def test_directories_of_a_killed_process_are_removed_by_the_next_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import os, signal\n"
        "from broker.testing import EmbeddedBroker\n"
        "broker = EmbeddedBroker().start()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    (abandoned,) = tmp_path.iterdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with EmbeddedBroker() as broker:
        assert list(tmp_path.iterdir()) == [broker.log_dir.parent]
        _forget_what_was_looked_at()
        with EmbeddedBroker():
            assert broker.log_dir.exists()

    assert not abandoned.exists()
    assert list(tmp_path.iterdir()) == []


def _forget_what_was_looked_at() -> None:
    own_directory._remove_abandoned.cache_clear()
