"""Archives of two days for tests: filled in batches, and read without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from spark_jobs.jobs.archive import NAME, ArchiveOptions, start
from spark_jobs.spark.streams import run_to_end
from tests.spark_jobs.data import days
from tests.spark_jobs.data.outside_readers import arrow_table
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import SparkSession

BATCH = 900


def options_for(servers: str, topic: str, place: Path, **more: object) -> ArchiveOptions:
    """Return options of a job that ends, with archive and checkpoint below `place`."""
    options = {
        "bootstrap_servers": servers,
        "topic": topic,
        "directory": place / "archive",
        "checkpoint": place / "checkpoint",
        "once": True,
        "max_offsets_per_trigger": BATCH,
    }
    return ArchiveOptions.model_validate(options | more)


def archived(spark: SparkSession, options: ArchiveOptions) -> int:
    """Run the job to its end; return how many records it read."""
    return run_to_end(start(spark, options))[NAME]


def filled(
    spark: SparkSession,
    servers: str,
    topic: str,
    place: Path,
    lines: slice = slice(None),
    **more: object,
) -> ArchiveOptions:
    """Produce lines of the two days to a new topic, and archive them."""
    days.make_topic(servers, topic)
    days.produce_lines(servers, topic, days.lines()[lines])
    options = options_for(servers, topic, place, **more)
    archived(spark, options)
    return options


def rows_of(options: ArchiveOptions) -> pd.DataFrame:
    """Return the archive's rows, as pandas has them."""
    table: pd.DataFrame = arrow_table(options.directory).to_pandas()
    return table


def places(options: ArchiveOptions) -> list[tuple[int, int]]:
    """Return partition and offset of each row of the archive, in order."""
    rows = arrow_table(options.directory).select(["partition", "offset"]).to_pydict()
    return sorted(zip(rows["partition"], rows["offset"], strict=True))


def places_of_flights(options: ArchiveOptions) -> list[tuple[int, int]]:
    """Return partition and offset of each record of the topic that is not damaged, in order."""
    damaged = {(line.key, line.value, line.timestamp_ms) for line in days.damaged()}
    return sorted(
        (record.partition, record.offset)
        for record in read_topic(options.bootstrap_servers, options.topic)
        if (record.key, record.value, record.timestamp_ms) not in damaged
    )


def sources_of_rejects(options: ArchiveOptions) -> list[tuple[int, int]]:
    """Return partition and offset that the rejects name, copies too, in order."""
    rejects = read_topic(options.bootstrap_servers, options.rejects())
    sources = [json.loads(record.value or b"")["source"] for record in rejects]
    return sorted((source["partition"], source["offset"]) for source in sources)
