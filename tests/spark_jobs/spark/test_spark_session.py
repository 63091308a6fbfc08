"""Ctrl-C while Spark starts, and a JVM that dies under a job: one line for each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import EXIT_FAILED
from tests.support.jars import REPOSITORY
from tests.support.java_command import SHORT_LIVED_JVM

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

START_SECONDS = 600
INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
from spark_jobs.errors import exit_code_of
from spark_jobs.options import SparkOptions
from spark_jobs.spark.spark_session import start_spark

made = SparkSession.__init__

def make(self, context, *arguments, **named):
    Path(sys.argv[2]).write_text("asking")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    context._jvm.java.lang.Thread.sleep(600_000)
    made(self, context, *arguments, **named)

SparkSession.__init__ = make
options = SparkOptions(spark_log=Path(sys.argv[1]))
sys.exit(exit_code_of(lambda: start_spark(options, "asked") and 0))
"""


KILLED = """
import os, signal, sys
from pathlib import Path
from spark_jobs.errors import JobError, exit_code_of
from spark_jobs.options import SparkOptions
from spark_jobs.spark.spark_session import started_spark

def work():
    options = SparkOptions(spark_log=Path(sys.argv[1]))
    with started_spark(options, "killed") as spark:
        if sys.argv[2] == "again":
            spark.range(1).count()
        process = spark.sparkContext._gateway.proc
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if sys.argv[2] == "while it fails":
            raise JobError("of something else")
        spark.range(1).count()

sys.exit(exit_code_of(work))
"""


def _run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **SHORT_LIVED_JVM},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "when",
    [
        "in a call",
        *(pytest.param(when, marks=pytest.mark.slow) for when in ("again", "while it fails")),
    ],
)
def test_a_jvm_that_is_killed_is_one_line(when: str, tmp_path: Path) -> None:
    outcome = _run(KILLED, tmp_path / "spark.log", when)
    assert outcome.stderr.startswith("error: Spark's Java process has ended"), outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert outcome.returncode == EXIT_FAILED


def test_ctrl_c_while_spark_answers_is_one_line(tmp_path: Path) -> None:
    outcome = _run(INTERRUPTED, tmp_path / "spark.log", tmp_path / "asked")
    assert (tmp_path / "asked").exists(), outcome.stderr
    assert outcome.stderr == "interrupted\n"
    assert outcome.returncode == 128 + signal.SIGINT
