"""SIGTERM to a job: its batch is ended; or to its whole process group: Spark's JVM ends as well.

Signals go to processes of their own, never to that of the tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from spark_jobs.errors import EXIT_BY_SIGNAL
from spark_jobs.spark.streams import run_to_end
from tests.spark_jobs.stopped_query import ROWS
from tests.support.jars import REPOSITORY
from tests.support.java_command import SHORT_LIVED_JVM

if TYPE_CHECKING:
    from pathlib import Path

RUN_SECONDS = 600
A_MINUTE = 60_000
"""Nobody waits for a row that takes so long; one that is interrupted ends at once."""

INTERRUPTED = """
import os, signal, sys
from py4j.protocol import Py4JNetworkError
from spark_jobs.errors import exit_code_of
from spark_jobs.spark.streams import run_to_end

class Query:
    def __getattr__(self, name):
        os.kill(os.getpid(), signal.SIGTERM)
        raise Py4JNetworkError("Answer from Java side is empty")

sys.exit(exit_code_of(lambda: len(run_to_end([Query()]))))
"""


class Query:
    """Of a JVM that is gone."""

    def __getattr__(self, name: str) -> Any:
        raise Py4JNetworkError("Answer from Java side is empty")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=REPOSITORY,
        env={**os.environ, **SHORT_LIVED_JVM},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def _stopped(place: Path, row_ms: int, *signals: str) -> dict[str, Any]:
    """Say what came of a query that got these signals in its first batch."""
    program = ("-m", "tests.spark_jobs.stopped_query")
    outcome = _run(*program, str(place), str(row_ms), *signals)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    return cast("dict[str, Any]", json.loads(outcome.stdout.splitlines()[-1]))


@pytest.mark.process
def test_a_job_whose_jvm_ended_of_the_same_signal_was_interrupted() -> None:
    outcome = _run("-c", INTERRUPTED)
    assert outcome.stderr == "interrupted\n"
    assert outcome.returncode == EXIT_BY_SIGNAL + signal.SIGTERM


def test_a_jvm_that_ends_by_itself_is_an_error() -> None:
    with pytest.raises(Py4JNetworkError):
        run_to_end([cast("Any", Query())])


@pytest.mark.spark
def test_a_job_that_is_stopped_ends_the_batch_it_has_begun(tmp_path: Path) -> None:
    said = _stopped(tmp_path, 1000, "SIGTERM")
    assert said["begun"] == said["committed"] != []
    assert said["read"] == {"slow": ROWS * len(said["begun"])}


@pytest.mark.slow
@pytest.mark.spark
def test_a_second_signal_ends_a_job_within_its_batch(tmp_path: Path) -> None:
    said = _stopped(tmp_path, A_MINUTE, "SIGTERM", "SIGINT")
    assert said == {"read": {"slow": 0}, "begun": [0], "committed": []}
