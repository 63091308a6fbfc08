"""A failed test's sockets, loops, threads and processes are its own, and gone before the next."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.support.jars import REPOSITORY

RUN_SECONDS = 300
SETTINGS = "[pytest]\nfilterwarnings = error\n"
TWO_TESTS = """
import asyncio, gc, os, socket, subprocess, sys, threading
import pytest

seen = []

{body}

def test_second():
    gc.collect()
    {second}
"""
BODIES = {
    "socket": (
        """
def test_first():
    left = socket.socket()
    seen.append(left.fileno())
    assert not left
""",
        "pytest.raises(OSError, os.fstat, seen[0])",
        "unclosed <socket",
    ),
    "socket of a fixture that fails at its end": (
        """
@pytest.fixture
def broken():
    yield
    left = socket.socket()
    seen.append(left.fileno())
    assert not left

def test_first(broken):
    pass
""",
        "pytest.raises(OSError, os.fstat, seen[0])",
        "unclosed <socket",
    ),
    "process": (
        """
def test_first():
    left = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    seen.append(left.pid)
    assert not left
""",
        "pytest.raises(ProcessLookupError, os.kill, seen[0], 0)",
        "subprocess .* is still running",
    ),
    "loop with a task": (
        """
async def wait():
    try:
        await asyncio.Event().wait()
    finally:
        seen.append("ended")

def test_first():
    loop = asyncio.new_event_loop()
    task = loop.create_task(wait())
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert not loop
""",
        'assert seen == ["ended"]',
        "unclosed event loop",
    ),
    "thread that ends with its socket": (
        """
def test_first():
    here, there = socket.socketpair()
    threading.Thread(target=there.recv, args=(1,), name="left").start()
    assert not here
""",
        'assert "left" not in [one.name for one in threading.enumerate()]',
        "unclosed <socket",
    ),
    "thread that goes on": (
        """
def test_first():
    threading.Thread(target=threading.Event().wait, daemon=True, name="left").start()
    raise AssertionError
""",
        "",
        r"Thread\(left.* is still running",
    ),
    "coroutine": (
        """
async def work():
    pass

def test_first():
    never = work()
    assert not never
""",
        "",
        "coroutine 'work' was never awaited",
    ),
    "thread that raises when its socket goes": (
        """
def test_first():
    here, there = socket.socketpair()
    threading.Thread(target=lambda: 1 / len(there.recv(1))).start()
    assert not here
""",
        "",
        "ZeroDivisionError",
    ),
}
"""Leftovers: the test that fails, the next one's assertion, and the warning of the first."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return pytest's output on all of them."""
    place = tmp_path_factory.mktemp("failing")
    (place / "pytest.ini").write_text(SETTINGS)
    for number, (body, second, _) in enumerate(BODIES.values()):
        file = place / f"test_{number}.py"
        file.write_text(TWO_TESTS.format(body=body, second=second))
    flags = (
        "-p",
        "tests.support.plugins.left_behind",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", *flags],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    return run.stdout + run.stderr


@pytest.mark.parametrize("kind", BODIES)
def test_leftovers_of_a_failed_test_are_removed_and_attributed_to_it(kind: str, said: str) -> None:
    file = f"test_{list(BODIES).index(kind)}.py"
    assert re.search(rf"^{file}::test_first (FAILED|ERROR)", said, re.MULTILINE), said
    assert f"{file}::test_second PASSED" in said

    _, _, summary = said.partition("warnings summary")
    sections = re.split(r"\n\n(?=test_\d)", summary)
    own = [section for section in sections if f"{file}::test_first\n" in section]
    assert any(re.search(BODIES[kind][2], section) for section in own), summary
