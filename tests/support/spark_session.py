"""Ending Spark in this process in any state, so that it can be started again."""

from __future__ import annotations

import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

STOP_SECONDS = 60.0

SPARK_IN_MAKE_TEST = frozenset({"test_route.py"})
"""Files whose tests on Spark `make test` runs, all in one session; others are slow tests."""

SPARK_IN_CI = frozenset(
    {
        "test_archive.py",
        "test_audit.py",
        "test_kept_table.py",
        "test_logs.py",
    }
)
"""Files whose tests on Spark `make test-slow` runs; only `make test-all` runs the others."""


def end_spark(session: SparkSession) -> None:
    """End Spark's JVM and have pyspark forget it; asked to stop, a busy one might never answer."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Sessions

    context = session.sparkContext
    gateway = context._gateway
    assert gateway is not None
    jvm: subprocess.Popen[bytes] = gateway.proc
    jvm.terminate()  # Spark removes its temporary directories as it goes
    try:
        jvm.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()
    if jvm.stdin is not None:
        jvm.stdin.close()
    context._accumulatorServer.shutdown()
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    Sessions._instantiatedSession = Sessions._activeSession = None


@contextmanager
def same_signal_handlers() -> Iterator[None]:
    """Leave Ctrl-C and SIGTERM to those who handle them now: Spark's start takes them for jobs."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
