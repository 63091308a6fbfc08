"""Processes beside the broker: how they end."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from tests.support.jars import REPOSITORY

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death"),
]

CHILD = """
import sys
from storage.side_process import SideProcess
process = SideProcess(sys.stdin.buffer, sys.stdout.buffer)
process.run(process.tell)
"""
PARENT = f"""
import subprocess, sys
source, target = map(int, sys.argv[1:])
subprocess.run([sys.executable, "-c", {CHILD!r}], stdin=source, stdout=target)
"""
SECONDS = 60


def test_a_side_process_at_work_ends_with_a_killed_broker() -> None:
    """Else it could write into files of the next broker."""
    source, to_child = os.pipe()
    from_child, target = os.pipe()
    try:
        arguments = [sys.executable, "-c", PARENT, str(source), str(target)]
        with subprocess.Popen(arguments, pass_fds=(source, target), cwd=REPOSITORY) as parent:
            os.close(source)
            os.close(target)
            os.write(to_child, b"a line\n")
            assert os.read(from_child, 100) == b"a line\n", "it is at work"
            parent.kill()

        readable, _, _ = select.select([from_child], [], [], SECONDS)
        assert readable, "it has not ended"
        assert os.read(from_child, 1) == b""
    finally:
        os.close(to_child)
        os.close(from_child)
