"""What the pipeline's enriched flights came to, counted from their topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.rejects import SOURCE_HEADER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def tally_enriched(records: DataFrame) -> tuple[int, int]:
    """Return how many flights have their plane, and how many have none; copies count once."""
    header = F.filter("headers", lambda header: header["key"] == SOURCE_HEADER)[0]
    plane = F.get_json_object(F.col("value").cast("string"), "$.plane.tailnum")
    by_source = records.groupBy(header["value"].alias("source")).agg(
        F.any_value(plane.isNotNull()).alias("has_plane")
    )
    counts = {
        row["has_plane"]: row["count"] for row in by_source.groupBy("has_plane").count().collect()
    }
    return counts.get(True, 0), counts.get(False, 0)
