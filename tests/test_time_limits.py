"""A test that times out hurts no other, wherever it was; and no test downloads anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.jars import REPOSITORY
from tests.support.java_command import SHORT_LIVED_JVM

if TYPE_CHECKING:
    from pathlib import Path

RUN_SECONDS = 600

IN_A_FIXTURE = """
import threading
import pytest

begun = []

@pytest.fixture(scope="session")
def shared():
    begun.append("shared")
    if len(begun) == 1:
        threading.Event().wait()
    return len(begun)

@pytest.mark.timeout(1)
def test_first(shared):
    pass

def test_second(shared):
    assert shared == 2
"""

IN_A_TEST = """
import threading
import pytest

begun, ended = [], []

@pytest.fixture(scope="session")
def shared():
    begun.append("shared")
    yield len(begun)
    ended.append("shared")

@pytest.fixture(scope="module")
def built_upon(shared):
    yield shared
    ended.append("built upon")

@pytest.fixture(scope="session")
def other():
    yield
    ended.append("other")

def test_before(built_upon, other):
    assert built_upon == 1

@pytest.mark.timeout(1)
def test_first(shared):
    threading.Event().wait()

def test_second(built_upon, other):
    assert ended == ["built upon", "shared"]
    assert built_upon == 2
"""

IN_A_CALLBACK = """
import asyncio
import pytest
from tests.support.plugins import timed_out

timed_out.AGAIN_SECONDS = 5

@pytest.mark.timeout(1)
def test_first():
    def spin():
        while True:
            pass

    async def call_and_wait():
        asyncio.get_running_loop().call_soon(spin)
        await asyncio.Event().wait()

    asyncio.run(call_and_wait())

def test_second():
    pass
"""

IN_SPARK = """
import pytest
from tests.spark_jobs.conftest import spark

names = []

@pytest.mark.timeout(1, func_only=True)
def test_first(spark):
    names.append(spark.sparkContext.applicationId)
    spark.sparkContext._jvm.java.lang.Thread.sleep(600_000)

def test_second(spark):
    assert spark.range(3).count() == 3
    assert spark.sparkContext.applicationId not in names
"""


def _outcomes(place: Path, program: str) -> dict[str, str]:
    """Run the tests of a program in their order; return what came of each."""
    (place / "pytest.ini").write_text("[pytest]\n")
    (place / "test_it.py").write_text(program)
    flags = (
        "-v",
        "-p",
        "tests.support.plugins.timed_out",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *flags, "test_it.py"],
        cwd=place,
        env={**os.environ, **SHORT_LIVED_JVM, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    found = re.findall(r"^test_it\.py::test_(\w+) ([A-Z]+)", run.stdout, re.MULTILINE)
    assert found, run.stdout + run.stderr
    assert "Timeout (>1" in run.stdout
    return dict(found)


def test_a_shared_fixture_that_timed_out_is_set_up_for_the_next_test(tmp_path: Path) -> None:
    assert _outcomes(tmp_path, IN_A_FIXTURE) == {"first": "ERROR", "second": "PASSED"}


def test_fixtures_of_a_timed_out_test_are_set_up_again(tmp_path: Path) -> None:
    assert _outcomes(tmp_path, IN_A_TEST) == {
        "before": "PASSED",
        "first": "FAILED",
        "second": "PASSED",
    }


def test_a_time_out_that_asyncio_swallows_comes_again(tmp_path: Path) -> None:
    assert _outcomes(tmp_path, IN_A_CALLBACK) == {"first": "FAILED", "second": "PASSED"}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(RUN_SECONDS)
def test_a_time_out_in_spark_leaves_a_sound_session_to_the_next_test(tmp_path: Path) -> None:
    assert _outcomes(tmp_path, IN_SPARK) == {"first": "FAILED", "second": "PASSED"}
