"""Small tables of the driver's as data frames, without Python on the executors.

`createDataFrame` has Python processes unpickle its rows, anew for each batch of a stream: they
want the driver's version of Python on each machine, and take more time than the batch.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession


def local_table(
    spark: SparkSession,
    rows: Iterable[Sequence[str | int | float | None]],
    columns: Mapping[str, str],
) -> DataFrame:
    """Return rows as a table; `columns` gives the Spark type of each, in the rows' order.

    Meant for some ten thousand rows: they travel in the query itself, as JSON.
    """
    text = json.dumps([dict(zip(columns, row, strict=True)) for row in rows])
    struct = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    table = F.from_json(F.lit(text), f"array<struct<{struct}>>")
    return spark.range(1).select(F.explode(table).alias("row")).select("row.*")


def no_rows(spark: SparkSession, schema: str) -> DataFrame:
    """Return a table of this schema, in Spark's words, that has no rows."""
    row = F.from_json(F.lit("{}"), schema).alias("row")
    return spark.range(0).select(row).select("row.*")
