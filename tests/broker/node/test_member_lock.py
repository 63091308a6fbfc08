"""The lock that shows whether a broker runs, and as which process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from broker.node.member_lock import MemberLock, holder, make_directory

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

HOLDER = """
import subprocess, sys
from broker.node.member_lock import MemberLock
lock = MemberLock.take(sys.argv[1])
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print("none" if lock is None else "held", flush=True)
input()
"""


def started(path: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_the_holder_is_known_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "broker0.lock"
    assert holder(str(path)) is None
    process, said = started(path)
    with process:
        assert said == "held"
        assert holder(str(path)) == process.pid
        assert MemberLock.take(str(path)) is None
        assert holder(str(path)) == process.pid  # asking and trying have not taken it away
        other, said = started(path)
        with other:
            assert said == "none"
            other.kill()
        process.kill()
        process.wait()
        assert holder(str(path)) is None
        taken = MemberLock.take(str(path))
        assert taken is not None
        taken.give_back()


def test_the_directory_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "node"
    make_directory(str(path))
    make_directory(str(path))
    assert path.stat().st_mode & 0o777 == 0o700
