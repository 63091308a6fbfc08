"""SIGTERM to a job: its batch is ended; or to its whole process group: Spark's JVM ends as well."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from spark_jobs.errors import EXIT_BY_SIGNAL, exit_code_of
from spark_jobs.options import StreamOptions
from spark_jobs.streams import run_to_end, run_until_stopped, start_batches

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


class Query:
    """Of a JVM that is gone; perhaps because of a signal that came just now."""

    def __init__(self, signal_number: int = 0) -> None:
        self._signal_number = signal_number

    def __getattr__(self, name: str) -> Any:
        if self._signal_number:
            os.kill(os.getpid(), self._signal_number)
        raise Py4JNetworkError("Answer from Java side is empty")


def test_a_job_whose_jvm_ended_of_the_same_signal_was_interrupted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    query = cast("Any", Query(signal.SIGTERM))

    assert exit_code_of(lambda: len(run_to_end([query]))) == EXIT_BY_SIGNAL + signal.SIGTERM
    assert capsys.readouterr().err == "interrupted\n"


def test_a_jvm_that_ends_by_itself_is_an_error() -> None:
    with pytest.raises(Py4JNetworkError):
        run_to_end([cast("Any", Query())])


A_SECOND = "reflect('java.lang.Thread', 'sleep', 1000L + value % 2)"
"""SQL that takes a second for each row."""


class Slow:
    """A query whose batches take three seconds each, of a source that needs no broker."""

    def __init__(self, spark: SparkSession, checkpoint: Path, signals: Sequence[float]) -> None:
        """`signals` are sent so many seconds after the first batch has begun."""
        self.batches = checkpoint / "slow" / "commits"
        self._signals = signals
        self.begun: list[int] = []
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3)
        rows = source.option("numPartitions", 1).load()
        options = StreamOptions(checkpoint=checkpoint, trigger_seconds=0)
        self.query = start_batches(rows, options, "slow", self._take)

    def committed(self) -> list[int]:
        """Return the batches that were ended."""
        return sorted(int(path.name) for path in self.batches.glob("[0-9]*"))

    def _take(self, rows: DataFrame, number: int) -> None:
        if not self.begun:
            for seconds in self._signals:
                threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM)).start()
        self.begun.append(number)
        rows.selectExpr(A_SECOND).write.format("noop").mode("append").save()


def test_a_job_that_is_stopped_ends_the_batch_it_has_begun(
    spark: SparkSession, tmp_path: Path
) -> None:
    slow = Slow(spark, tmp_path, [0.5])

    rows = run_until_stopped([slow.query])
    assert slow.begun == slow.committed() != []
    assert rows == {"slow": 3 * len(slow.begun)}


def test_a_second_signal_ends_a_job_within_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    slow = Slow(spark, tmp_path, [0.5, 1.0])

    assert run_until_stopped([slow.query]) == {"slow": 0}
    assert (slow.begun, slow.committed()) == ([0], [])
