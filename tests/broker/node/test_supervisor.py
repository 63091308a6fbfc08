"""A supervisor and one broker, without ZooKeeper; several are in `interop/clusters/test_node`."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from broker.metrics.status_socket import StatusSocket
from broker.node.gathered_metrics import ANSWER_SECONDS
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.node import Node
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.process

SECONDS = 120.0


@pytest.fixture
def metrics_port() -> int:
    return free_port()


@pytest.fixture
def node(tmp_path: Path, metrics_port: int) -> Iterator[Node]:
    keys = {"metrics.port": str(metrics_port), "broker.processes.restart.backoff.ms": "10"}
    with Node(tmp_path, keys, count=1) as node:
        node.launch()
        node.wait_until_serving()
        yield node


def metrics(port: int, path: str = "/metrics") -> str:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS) as page:
        text: str = page.read().decode()
    return text


def test_one_broker_can_be_supervised_without_zookeeper(node: Node, metrics_port: int) -> None:
    assert 'node_broker_up{broker="0"} 1' in metrics(metrics_port)
    assert "# HELP kafka_log_log_size" in metrics(metrics_port, "/metrics/partitions")
    with pytest.raises(HTTPError, match="404"):
        metrics(metrics_port, "/nowhere")

    node.kill_broker(0)

    assert wait_until(lambda: node.restarts() == {0: 1}, SECONDS)
    node.wait_until_serving()
    assert 'node_broker_restarts_total{broker="0"} 1' in metrics(metrics_port)
    assert node.stop() == 0
    assert node.pids() == {0: None}


def test_metrics_say_which_broker_is_away(node: Node, metrics_port: int) -> None:
    """Several clients that ask at the same time are answered within the wait of one."""
    node.freeze_broker(0)
    begin = time.monotonic()
    with ThreadPoolExecutor() as scrapers:
        pages = list(scrapers.map(metrics, [metrics_port] * 3))
    assert time.monotonic() - begin < 2 * ANSWER_SECONDS
    for page in pages:
        assert 'node_broker_up{broker="0"} 0' in page
        assert "kafka_server" not in page
    node.signal(signal.SIGTERM)  # a frozen one ends when it is thawed
    node.thaw_broker(0)
    assert node.wait_until_ended() == 0


def test_sigusr1_starts_a_rolling_restart_and_status_reports_it(node: Node) -> None:
    before = node.pid(0)
    node.signal(signal.SIGUSR1)
    assert wait_until(lambda: "all brokers were restarted" in node.output_tail(), SECONDS)
    assert node.pid(0) not in {None, before}
    code, said = node.command("--status")
    assert (code, said.splitlines()[-1]) == (0, "rolling restart: done: all brokers were restarted")


def test_a_node_that_is_told_to_stop_in_a_rolling_restart_stops(node: Node) -> None:
    node.signal(signal.SIGUSR1)
    step = "waiting for the last replicas"
    assert wait_until(lambda: step in node.output_tail(), SECONDS)
    node.signal(signal.SIGTERM)
    assert node.wait_until_ended() == 0
    assert node.pids() == {0: None}


def test_commands_without_a_supervisor_report_that(tmp_path: Path) -> None:
    node = Node(tmp_path, {}, count=1)
    assert node.command("--check") == (0, "")
    code, said = node.command("--rolling-restart")
    assert (code, said.endswith("node.lock: nobody supervises these brokers\n")) == (1, True)
    code, said = node.command("--status")
    assert (code, "no supervisor answers" in said) == (1, True)


def test_status_reports_a_starting_supervisor(tmp_path: Path) -> None:
    node = Node(tmp_path, {}, count=1)
    state = tmp_path / "data" / "node"
    state.mkdir(parents=True)
    begins = StatusSocket(str(state / "node.sock"))
    try:
        code, said = node.command("--status")
    finally:
        begins.close()
    assert (code, said) == (1, f"{state}/node.sock: no supervisor answers: it is starting\n")


def test_check_warns_of_unknown_keys(tmp_path: Path) -> None:
    node = Node(tmp_path, {"num.partition": "3"}, count=1)
    code, said = node.command("--check")
    assert code == 0
    assert said.endswith("num.partition is not a configuration key; did you mean num.partitions?\n")
    assert said.startswith("warning: ")


def test_an_invalid_file_is_reported_once_and_creates_no_directory(tmp_path: Path) -> None:
    node = Node(tmp_path, {"num.partitions": "0"}, count=2)
    code, said = node.command()
    assert code == 1
    assert said.count("Invalid value 0 for configuration num.partitions") == 1
    assert not (tmp_path / "data").exists()


def test_metrics_whose_port_is_taken_end_the_start_in_one_line(
    node: Node, tmp_path: Path, metrics_port: int
) -> None:
    other = Node(tmp_path / "other", {"metrics.port": str(metrics_port)}, count=1)
    code, said = other.command()
    assert code == 1
    assert said.splitlines()[-1] == f"metrics.port: 127.0.0.1:{metrics_port} is already in use"
    assert other.pid(0) is None
