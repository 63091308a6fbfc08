"""A broker as a process: stopped in order, killed, and on a disk that fills up."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compiled.activation import activation
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest
from protocol.messages.topics import CreateTopicsRequest
from tests.broker.handlers.data_broker import (
    fetch_request,
    offsets,
    produce_request,
    records,
    wanted,
)
from tests.support.brokers.ours import ours
from tests.support.processes.terminal import Terminal
from tests.support.processes.waiting import wait_until
from tests.support.wire import RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.process

FILE_BYTES_LIMIT = 2_000_000
"""Size of the full disk: a limit on every file of the process stands in for it."""

CHUNK = bytes(200_000)
SMALL_INDEXES = {"log.index.size.max.bytes": "100000"}
"""Indexes are made in their greatest size, which must be below the limit."""

WAIT_SECONDS = 60.0
PRODUCE_VERSION = 3
FETCH_VERSION = 4


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = ours(tmp_path, SMALL_INDEXES)
    yield process
    process.kill()


def ask(broker: BrokerProcess, request: Request, version: int) -> Any:
    """Send a request of a version with the old header; return the answer."""
    cls = type(request)
    header = request_header(cls.API_KEY, version)
    with RawConnection.open(broker.port) as connection:
        return cls.RESPONSE.decode(version, connection.ask(header + request.encode(version))[4:])


def create(broker: BrokerProcess, topic: str, **config: str) -> None:
    kind = CreateTopicsRequest.Topic
    entries = [
        kind.Config(name=name.replace("_", "."), value=value) for name, value in config.items()
    ]
    wanted_topic = kind(
        name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=entries
    )
    response = ask(broker, CreateTopicsRequest(topics=[wanted_topic], timeout_ms=5000), 4)
    assert response.topics[0].error_code == ErrorCode.NONE


def produce(broker: BrokerProcess, topic: str, value: bytes = b"v") -> ErrorCode:
    request = produce_request({(topic, 0): records(value=value)}, PRODUCE_VERSION)
    response = ask(broker, request, PRODUCE_VERSION)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def leader_of(broker: BrokerProcess, topic: str) -> tuple[ErrorCode, int, list[int]]:
    """Return error, leader and offline replicas of a topic's first partition in Metadata."""
    request = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)])
    [partition] = ask(broker, request, 8).topics[0].partitions
    return ErrorCode(partition.error_code), partition.leader_id, partition.offline_replicas


def read_offsets(broker: BrokerProcess, topic: str) -> list[int]:
    """Offsets of all records that can be read."""
    found: list[int] = []
    while True:
        request = fetch_request(wanted(topic, offset=len(found)))
        response = ask(broker, request, FETCH_VERSION)
        more = offsets(response.responses[0].partitions[0])
        if not more:
            return found
        found += more


def last_run(broker: BrokerProcess) -> str:
    """Return the output of the last start so far."""
    text = broker.output_path.read_text(encoding="utf-8")
    return text[text.rfind("--- start") :]


def start(broker: BrokerProcess) -> None:
    broker.directory.mkdir(exist_ok=True)
    with broker.output_path.open("a", encoding="utf-8") as output:
        output.write("--- start\n")
    broker.start()


def test_sigterm_is_a_clean_stop_and_the_next_start_recovers_nothing(
    broker: BrokerProcess,
) -> None:
    start(broker)
    create(broker, "orders")
    for _ in range(3):
        assert produce(broker, "orders") == ErrorCode.NONE

    assert broker.stop() == 0

    assert re.search(r"INFO broker.app: stopped in \d+ ms$", last_run(broker).strip())
    assert (broker.data_directory / ".kafka_cleanshutdown").exists()
    start(broker)
    assert read_offsets(broker, "orders") == [0, 1, 2]
    assert f"INFO broker.app: compiled: {activation().answer} (" in last_run(broker)
    assert re.search(r"loaded 1 logs in \d+ ms", last_run(broker))
    assert "recovered" not in last_run(broker)
    assert re.search(rf"ready on PLAINTEXT://127.0.0.1:{broker.port} in \d+ ms", last_run(broker))


def test_a_closed_terminal_is_a_clean_stop(broker: BrokerProcess) -> None:
    broker.directory.mkdir(exist_ok=True)
    with Terminal(broker.command, broker.working_directory) as terminal:
        terminal.read_line_with(" ready on ", WAIT_SECONDS)
        create(broker, "orders")
        assert produce(broker, "orders") == ErrorCode.NONE
        terminal.hang_up()
        assert terminal.wait(WAIT_SECONDS) == 0
    assert (broker.data_directory / ".kafka_cleanshutdown").exists()
    start(broker)
    assert read_offsets(broker, "orders") == [0]
    assert "recovered" not in last_run(broker)


def test_a_broker_that_was_started_to_outlive_its_terminal_does(broker: BrokerProcess) -> None:
    broker.command = ["nohup", *broker.command]
    start(broker)
    status = Path(f"/proc/{broker.pid}/status").read_text(encoding="ascii")
    [ignored] = re.findall(r"^SigIgn:\s+([0-9a-f]+)$", status, re.MULTILINE)
    assert int(ignored, 16) & 1 << signal.SIGHUP - 1
    os.kill(broker.pid, signal.SIGHUP)
    create(broker, "orders")
    assert broker.stop() == 0


def test_a_start_after_a_kill_logs_and_serves_the_recovered_records(broker: BrokerProcess) -> None:
    start(broker)
    create(broker, "orders")
    for _ in range(3):
        assert produce(broker, "orders") == ErrorCode.NONE
    broker.kill()
    (log,) = (broker.data_directory / "orders-0").glob("*.log")
    with log.open("ab") as file:
        file.write(b"torn")

    start(broker)

    assert read_offsets(broker, "orders") == [0, 1, 2]
    assert re.search(
        r"recovered 1 logs in \S+/data after an unclean stop: "
        r"\d+ bytes checked, 4 cut, 0 removed in whole segments, in \d+ ms",
        last_run(broker),
    )
    assert produce(broker, "orders") == ErrorCode.NONE


needs_prlimit = pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")


def limited(broker: BrokerProcess) -> list[str]:
    """The command of a broker that cannot write a file of more than `FILE_BYTES_LIMIT`."""
    return ["prlimit", f"--fsize={FILE_BYTES_LIMIT}", *broker.command]


def fill_up(broker: BrokerProcess, topic: str) -> tuple[int, ErrorCode]:
    """Produce until that is refused; how many were acknowledged, and the refusal."""
    for count in range(FILE_BYTES_LIMIT // len(CHUNK) + 1):
        code = produce(broker, topic, CHUNK)
        if code != ErrorCode.NONE:
            return count, code
    raise AssertionError("the disk is not full")


@needs_prlimit
def test_a_full_disk_ends_the_broker_and_keeps_acknowledged_records(
    broker: BrokerProcess,
) -> None:
    command = broker.command
    broker.command = limited(broker)
    start(broker)
    create(broker, "orders")

    count, code = fill_up(broker, "orders")

    assert code == ErrorCode.KAFKA_STORAGE_ERROR
    assert count > 3
    assert broker.wait_until_ended() == 1
    text = last_run(broker)
    assert "Traceback" not in text
    (error,) = [line for line in text.splitlines() if " ERROR " in line]
    assert error.endswith("File too large; the log directory is offline now")
    assert text.splitlines()[-1] == "no log directory is left that can be written"

    broker.command = command
    start(broker)
    assert read_offsets(broker, "orders") == list(range(count))
    assert produce(broker, "orders", CHUNK) == ErrorCode.NONE


@needs_prlimit
def test_full_disk_takes_one_directory_offline_and_the_other_serves_on(tmp_path: Path) -> None:
    directories = f"{tmp_path}/full,{tmp_path}/good"
    broker = ours(tmp_path, {"log.dirs": directories, **SMALL_INDEXES})
    command = broker.command
    broker.command = limited(broker)
    try:
        start(broker)
        for topic in ("one", "two"):
            create(broker, topic)
        full, good = ("one", "two") if (tmp_path / "full" / "one-0").exists() else ("two", "one")
        assert produce(broker, good) == ErrorCode.NONE

        count, code = fill_up(broker, full)

        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(broker, good) == ErrorCode.NONE
        assert read_offsets(broker, good) == [0, 1]
        assert leader_of(broker, good) == (ErrorCode.NONE, 0, [])
        # The controller has yet to hear of it.
        assert wait_until(lambda: leader_of(broker, full)[1] != 0, WAIT_SECONDS)
        assert leader_of(broker, full) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [0])
        assert produce(broker, full) == ErrorCode.KAFKA_STORAGE_ERROR
        assert broker.stop() == 0
        assert "Traceback" not in last_run(broker)

        broker.command = command
        start(broker)
        assert read_offsets(broker, full) == list(range(count))
        assert read_offsets(broker, good) == [0, 1]
    finally:
        broker.kill()


def test_python_without_assertions_is_refused(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"broker.id=0\nlog.dirs={tmp_path}/data\n", encoding="utf-8")

    outcome = subprocess.run(
        [sys.executable, "-O", "-m", "broker", "--config", str(properties)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert outcome.returncode == 1
    assert outcome.stderr == "the broker needs its assertions: run Python without -O\n"
    assert not (tmp_path / "data").exists()
