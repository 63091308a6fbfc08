"""A batch that was planned, and not done, is done by the next run, which then comes to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import JobError
from spark_jobs.options import StreamOptions
from spark_jobs.spark.streams import read_stream, run_to_end, start_batches
from tests.spark_jobs.conftest import TOPIC

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.jobs.produce_flights import Outcome


def test_a_batch_that_was_planned_is_done_by_the_next_run(
    servers: str, spark: SparkSession, produced: Outcome, tmp_path: Path
) -> None:
    options = StreamOptions(bootstrap_servers=servers, checkpoint=tmp_path, once=True)
    rows = read_stream(spark, options, TOPIC)
    taken: list[tuple[int, int]] = []

    def take(batch: DataFrame, number: int) -> None:
        taken.append((number, batch.count()))
        if len(taken) == 1:
            raise RuntimeError("the driver is gone")

    with pytest.raises(JobError, match="the driver is gone"):
        run_to_end([start_batches(rows, options, "planned", take)])
    run_to_end([start_batches(rows, options, "planned", take)])
    assert taken == [(0, produced.lines)] * 2
