"""`make cluster`: a number of brokers that cannot be is told, and Ctrl-C leaves no process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.terminal import Terminal
from tests.support.processes.waiting import wait_until

SCRIPT = Path(__file__).parents[1] / "scripts" / "cluster.py"
SECONDS = 120.0

STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("stubborn as", os.getpid(), flush=True)
while True:
    signal.pause()
"""
WITH_ONE_SERVER = """
import signal, sys
sys.path.insert(0, sys.argv[1])
import cluster
servers = []
cluster.end_on_signals(servers)
try:
    servers.append(cluster.Server("one", [sys.executable, "-c", sys.argv[2]]))
    signal.pause()
finally:
    cluster.end_all(servers)
"""


TALKATIVE = """
import os, pathlib, signal, sys
def end(*_):
    for _ in range(1000):
        print("ends" * 100, flush=True)
    pathlib.Path(os.environ["ENDED"]).touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("talkative as", os.getpid(), flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (0, "fewer than 3 cannot hold topics of 3 replicas"),
        (2, "fewer than 3 cannot hold topics of 3 replicas"),
        (4, "there is no config/server-3.properties"),
    ],
)
def test_an_invalid_number_of_brokers_is_refused(count: int, reason: str) -> None:
    command = [sys.executable, str(SCRIPT), "--brokers", str(count)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 2
    assert f"--brokers {count}: {reason}" in ended.stderr


def test_the_second_ctrl_c_kills_what_the_first_one_waits_for() -> None:
    command = [sys.executable, "-c", WITH_ONE_SERVER, str(SCRIPT.parent), STUBBORN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        server = int(script.stdout.readline().rpartition(" ")[2])
        script.send_signal(signal.SIGINT)
        assert script.stdout.readline() == "\n"
        assert "Ctrl-C again kills" in script.stdout.readline()
        assert script.poll() is None
        script.send_signal(signal.SIGINT)
        assert script.wait(SECONDS) == 0
    assert wait_until(lambda: not Path(f"/proc/{server}").exists(), SECONDS)


def test_servers_end_in_order_when_the_terminal_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = tmp_path / "ended"
    monkeypatch.setenv("ENDED", str(ended))
    command = [sys.executable, "-c", WITH_ONE_SERVER, str(SCRIPT.parent), TALKATIVE]
    with Terminal(command) as terminal:
        server = int(terminal.read_line_with("talkative as", SECONDS).rpartition(" ")[2])
        terminal.hang_up()
        assert terminal.wait(SECONDS) == 128 + signal.SIGHUP
    assert ended.exists()
    assert not Path(f"/proc/{server}").exists()
