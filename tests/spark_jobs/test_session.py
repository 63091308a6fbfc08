"""Ctrl-C while Spark starts: one line, whatever Spark was asked at that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.jars import REPOSITORY
from tests.support.java_command import SHORT_LIVED_JVM

if TYPE_CHECKING:
    from pathlib import Path

START_SECONDS = 120
PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
from spark_jobs.errors import exit_code_of
from spark_jobs.options import SparkOptions
from spark_jobs.session import start_spark

made = SparkSession.__init__

def make(self, context, *arguments, **named):
    Path(sys.argv[2]).write_text("asking")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    context._jvm.java.lang.Thread.sleep(2000)
    made(self, context, *arguments, **named)

SparkSession.__init__ = make
options = SparkOptions(spark_log=Path(sys.argv[1]))
sys.exit(exit_code_of(lambda: start_spark(options, "asked") and 0))
"""


def test_ctrl_c_while_spark_answers_is_one_line(tmp_path: Path) -> None:
    outcome = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "spark.log", tmp_path / "asked"],
        cwd=REPOSITORY,
        env={**os.environ, **SHORT_LIVED_JVM},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert (tmp_path / "asked").exists(), outcome.stderr
    assert outcome.stderr == "interrupted\n"
    assert outcome.returncode == 128 + signal.SIGINT
