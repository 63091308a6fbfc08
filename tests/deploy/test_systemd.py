"""The units, as systemd reads them, and a broker that is started as they say."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.health.__main__ import main as is_well
from tests.support.brokers.ours import ours
from tests.support.certificates import Authority
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.process
UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"))
COMMAND = "/opt/kafka-broker/bin/kafka-broker-python"
SECONDS = 60.0
MOST_EXPOSED = 2.0
"""Of 10, as `systemd-analyze security` counts; it shows what each setting adds."""


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[socket.socket]:
    """Yield the socket that a service manager listens on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(SECONDS)
        yield ear


def _analyzed(*words: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    command = ["systemd-analyze", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_finds_nothing_wrong_with_a_unit(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text()
    assert f"ExecStart={COMMAND} " in text
    copy = tmp_path / unit.name
    copy.write_text(text.replace(COMMAND, "/bin/true"))  # verify looks for the program
    verified = _analyzed("verify", "--man=no", str(copy))
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    judged = _analyzed(
        "security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}", str(copy)
    )
    assert judged.returncode == 0, judged.stdout


def test_the_broker_sends_ready_watchdog_and_stopping(ear: socket.socket, tmp_path: Path) -> None:
    broker = ours(tmp_path)
    broker.environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
    broker.launch()
    try:
        assert ear.recv(1000) == b"READY=1\nSTATUS=broker 0 serves"
        broker.check_serving()
        assert [ear.recv(1000) for _ in range(3)] == [b"WATCHDOG=1"] * 3
    finally:
        broker.stop()
    heard: list[bytes] = []
    while not heard or heard[-1] == b"WATCHDOG=1":
        heard.append(ear.recv(1000))
    assert heard[-1] == b"STOPPING=1\nSTATUS=stopping"


def test_the_health_check_works_with_required_client_certificates(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("localhost", directory=tmp_path)
    broker = ours(tmp_path)
    settings = {
        "listeners": f"SSL://127.0.0.1:{broker.port}",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        **issued.as_keystore("PEM"),
        **authority.as_truststore(tmp_path, "PEM"),
    }
    overrides = [word for key, text in settings.items() for word in ("--override", f"{key}={text}")]
    broker.command += overrides
    broker.launch()
    asking = ["--config", str(tmp_path / "server.properties"), *overrides]
    try:
        said = broker.output_path
        assert wait_until(lambda: " ready on " in said.read_text(), SECONDS), said.read_text()
        assert is_well(asking) == 0
        broker.freeze()
        assert is_well([*asking, "--timeout", "0.2"]) == 1
    finally:
        broker.thaw()
        broker.stop()
    assert is_well(asking) == 1
