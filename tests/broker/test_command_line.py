"""Keys about processes, not brokers, on the command line."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.brokers.ours import ours

pytestmark = pytest.mark.process


def test_a_broker_stays_on_the_cpus_it_is_given(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    broker = ours(tmp_path, {"broker.cpus": str(cpu)})
    broker.start()
    try:
        for thread in Path(f"/proc/{broker.pid}/task").iterdir():
            assert os.sched_getaffinity(int(thread.name)) == {cpu}
    finally:
        broker.kill()


def refusal(directory: Path, properties: dict[str, str], *words: str) -> str:
    broker = ours(directory, properties)
    broker.command += words
    broker.launch()
    assert broker.wait_until_ended() == 1
    return broker.output_tail()


def test_nonexistent_cpus_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"broker.cpus": "4095"}).startswith(
        "Invalid value 4095 for configuration broker.cpus: CPUs here are 0"
    )


def test_a_file_of_several_brokers_is_not_taken_for_one(tmp_path: Path) -> None:
    said = refusal(tmp_path, {"broker.processes": "3"})
    assert "is for 3 brokers (broker.processes); start them by: python -m broker.node" in said
    assert not (tmp_path / "data").exists()


def test_an_error_of_one_of_several_brokers_names_its_process(tmp_path: Path) -> None:
    said = refusal(tmp_path, {"broker.processes": "2"}, "--process", "1")
    assert said.startswith("process 1 | ")
    assert "several brokers are one cluster through ZooKeeper only" in said


@pytest.mark.parametrize("number", ["1", "-1"])
def test_a_process_that_the_file_is_not_for_is_refused(number: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, {}, "--process", number)
    assert f"--process {number}: " in said
    assert "is for processes 0 to 0 (broker.processes)" in said
    assert not (tmp_path / "data").exists()


INTERRUPTING = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("broker", "asyncio"),
        ("broker", "config.errors"),
        ("broker", "broker.app"),
        ("broker.node", "asyncio"),
        ("broker.node", "broker.node.supervisor"),
    ],
)
def test_an_interrupt_while_modules_are_imported_is_silent(
    tmp_path: Path, program: str, module: str
) -> None:
    broker = ours(tmp_path)
    command = [program if word == "broker" else word for word in broker.command]
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "INTERRUPTED_AT": module}
    done = subprocess.run(
        command,
        cwd=broker.working_directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
