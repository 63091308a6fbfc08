"""Records of the pipeline's topics, counted by what they came from: copies count once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.rejects import SOURCE_HEADER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def count_sources(records: DataFrame) -> int:
    """Return how many different records these came of."""
    return records.select(_source().alias("source")).distinct().count()


def tally_enriched(records: DataFrame) -> tuple[int, int]:
    """Return how many flights have their plane, and how many have none."""
    plane = F.get_json_object(F.col("value").cast("string"), "$.plane.tailnum")
    by_source = records.groupBy(_source().alias("source")).agg(
        F.any_value(plane.isNotNull()).alias("has_plane")
    )
    rows = by_source.groupBy("has_plane").count().collect()
    counts = {row["has_plane"]: row["count"] for row in rows}
    return counts.get(True, 0), counts.get(False, 0)


def _source() -> Column:
    return F.filter("headers", lambda header: header["key"] == SOURCE_HEADER)[0]["value"]
