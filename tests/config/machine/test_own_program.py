"""The name of this program, and the paths of its parts."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from config.machine.own_program import CODE, environment, module_command, usage_name

ROOT = Path(__file__).parents[3]


def test_our_code_is_found_wherever_a_process_is_started() -> None:
    assert environment({"PYTHONPATH": "/theirs", "A": "1"}) == {
        "PYTHONPATH": f"{ROOT}:/theirs",
        "A": "1",
    }
    assert environment({}) == {"PYTHONPATH": str(ROOT)}
    assert CODE == ROOT


def test_an_installation_needs_no_path() -> None:
    assert environment({"A": "1"}, Path(sysconfig.get_path("purelib"))) == {"A": "1"}


@pytest.mark.process
def test_modules_of_the_working_directory_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "argparse.py").write_text("raise SystemExit('not this one')")
    ended = subprocess.run(
        module_command("broker", "--help"),
        cwd=tmp_path,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.stdout.startswith("usage: python -m broker [-h]")


@pytest.mark.parametrize(
    ("program", "module", "name"),
    [
        ("/x/bin/kafka-broker-python", "broker", "kafka-broker-python"),
        ("/x/bin/kafka-broker-python", "broker.key_index", "kafka-broker-python key-index"),
        ("/x/broker/node/__main__.py", "broker.node", "python -m broker.node"),
    ],
)
def test_usage_names_the_command_as_typed(
    program: str, module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    assert usage_name(module) == name
