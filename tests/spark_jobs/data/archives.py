"""Archives of two days for tests: filled in batches, and read as if they were any directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from spark_jobs.jobs.archive import NAME, ArchiveOptions, start
from spark_jobs.spark.streams import run_to_end
from tests.spark_jobs.data import days
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

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
    spark: SparkSession, servers: str, topic: str, place: Path, lines: slice = slice(None)
) -> ArchiveOptions:
    """Produce lines of the two days to a new topic, and archive them."""
    days.make_topic(servers, topic)
    days.produce_lines(servers, topic, days.lines()[lines])
    options = options_for(servers, topic, place)
    archived(spark, options)
    return options


def listed(spark: SparkSession, options: ArchiveOptions) -> DataFrame:
    """Return what any reader finds that takes the directory for what it looks like."""
    return spark.read.parquet(str(options.directory))


def places(rows: DataFrame) -> list[tuple[int, int]]:
    """Return partition and offset of each row, in order."""
    return sorted((row[0], row[1]) for row in rows.select("partition", "offset").collect())


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
