"""Records that a topic has lost before a query read them: what `--on-data-loss record` tells."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from spark_jobs.kafka.offsets import open_offsets

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.options import StreamOptions


def tell_lost_records(spark: SparkSession, options: StreamOptions, query: str) -> None:
    """Print a line for each partition that begins beyond what a query has read of it."""
    for topic, partitions in _position(options.checkpoint / query).items():
        with open_offsets(spark, options) as offsets:
            earliest = offsets.earliest(topic)
        for partition, begin in partitions.items():
            first = earliest.get(int(partition), 0)
            if first > begin:
                tell_lost(query, f"{topic}-{partition}", begin, first)


def tell_lost(query: str, partition: str, begin: int, first: int) -> None:
    """Print the line about the records of a partition from `begin` to before `first`."""
    print(
        f"{query}: {partition}: records at offsets {begin:,} to {first - 1:,} went before they "
        f"were read: going on at {first:,}",
        file=sys.stderr,
    )


def _position(checkpoint: Path) -> dict[str, dict[str, int]]:
    """Return the offsets, by topic and partition, up to which batches have been finished."""
    batches = [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")]
    if not batches:
        return {}
    text = (checkpoint / "offsets" / str(max(batches))).read_text(encoding="utf-8")
    position: dict[str, dict[str, int]] = json.loads(text.splitlines()[-1])
    return position
