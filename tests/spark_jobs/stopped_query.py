"""A query that is sent signals as its first batch begins, as a program that says what came of it.

    python -m tests.spark_jobs.stopped_query DIRECTORY MILLISECONDS SIGNAL...

A batch has three rows, each of which takes that long. The program has a process of its own, for the
signals are sent to it: one that comes late, on a busy machine, would end whatever runs by then.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.options import StreamOptions
from spark_jobs.spark import streams
from spark_jobs.spark.spark_session import started_spark
from spark_jobs.spark.streams import run_until_stopped, start_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "slow"
ROWS = 3
NEVER = 1e9


def main() -> None:
    """Run it; print rows read, batches begun and batches committed as JSON."""
    directory, milliseconds = Path(sys.argv[1]), int(sys.argv[2])
    signals = [signal.Signals[name] for name in sys.argv[3:]]
    slowly = f"reflect('java.lang.Thread', 'sleep', {milliseconds}L + value % 2)"
    begun: list[int] = []

    def take(rows: DataFrame, number: int) -> None:
        if not begun:
            for each in signals:
                os.kill(os.getpid(), each)
        begun.append(number)
        rows.selectExpr(slowly).write.format("noop").mode("append").save()

    streams.STOP_SECONDS = NEVER  # what ends a batch is what is asked for here
    options = StreamOptions(
        checkpoint=directory, spark_log=directory / "spark.log", trigger_seconds=0
    )
    with started_spark(options, "stopped") as spark:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
        rows = source.option("numPartitions", 1).load()
        read = run_until_stopped([start_batches(rows, options, NAME, take)])
    commits = (directory / NAME / "commits").glob("[0-9]*")
    said = {"read": read, "begun": begun, "committed": sorted(int(path.name) for path in commits)}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
