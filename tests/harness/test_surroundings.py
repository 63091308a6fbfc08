"""`scripts/surroundings.py` makes what it says, or says that it cannot."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

SHOWN = {
    "small-buffers": ("sysctl -n net.ipv4.tcp_rmem net.ipv4.tcp_wmem", "4096\t4096\t4096"),
    "large-buffers": ("sysctl -n net.ipv4.tcp_rmem net.ipv4.tcp_wmem", "33554432\t33554432"),
    "no-ipv6": ("sysctl -n net.ipv6.conf.lo.disable_ipv6", "1"),
    "c-locale": ("echo $LC_ALL", "C"),
    "umask": ("umask", "077"),
    "one-core": ("nproc", "1"),
    "other-file-system": ("stat -f -c %T $TMPDIR", "tmpfs"),
}
"""A question to ask in it, and what every line of the answer ends with."""


@pytest.fixture(scope="module")
def script() -> Any:
    path = REPOSITORY / "scripts" / "surroundings.py"
    spec = importlib.util.spec_from_file_location("surroundings", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SHOWN)
def test_each_surrounding_has_the_property_of_its_name(name: str, script: Any) -> None:
    question, answer = SHOWN[name]
    surrounding = script.SURROUNDINGS[name]
    probe = subprocess.run(script.inside(surrounding, ["true"]), capture_output=True, check=False)
    if probe.returncode:
        pytest.skip(f"it cannot be made here: {probe.stderr.decode()}")
    asked = script.inside(surrounding, ["sh", "-c", question])
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert told
    assert [line for line in told.splitlines() if not line.endswith(answer)] == []


def test_machine_is_as_it_was_beside_a_surrounding(script: Any) -> None:
    def settings() -> tuple[str, set[int]]:
        asked = ["sysctl", "-n", "net.ipv4.tcp_rmem"]
        told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        return told, os.sched_getaffinity(0)

    before = settings()
    for surrounding in script.SURROUNDINGS.values():
        subprocess.run(script.inside(surrounding, ["true"]), capture_output=True, check=False)
    assert settings() == before


def test_surroundings_that_cannot_be_made_are_listed_and_not_run(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "KEPT", tmp_path)
    never = script.Surrounding("echo there is no such thing >&2; false")
    monkeypatch.setitem(script.SURROUNDINGS, "never", never)
    assert script.tried("never", "ARGS=") == ("not made", 0.0, "there is no such thing")
    assert list(tmp_path.iterdir()) == []


def test_the_summary_line_of_pytest_is_found(script: Any) -> None:
    told = "==== 2 failed, 10889 passed, 31 skipped in 880.12s (0:14:40) ====\nmake: *** [test]\n"
    assert script.OUTCOME.findall(told) == [
        "2 failed, 10889 passed, 31 skipped in 880.12s (0:14:40)"
    ]
