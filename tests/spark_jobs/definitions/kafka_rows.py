"""Records as Spark's Kafka source has them, without a broker."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

KAFKA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"

APPENDED = dt.datetime(2013, 3, 1, tzinfo=dt.UTC)


def kafka_rows(
    spark: SparkSession, values: Sequence[bytes | None], keys: Sequence[bytes | None] = ()
) -> DataFrame:
    """Return a record for each value, in one partition of the topic `t`."""
    rows = [
        (_bytes(keys[at]) if keys else None, _bytes(value), "t", 0, at, APPENDED)
        for at, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, KAFKA)


def _bytes(value: bytes | None) -> bytearray | None:
    return None if value is None else bytearray(value)
