"""Orders with nested items, decimals and maps in tables of both formats, read without Spark."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.jobs.archive import ArchiveOptions
from tests.spark_jobs.data.archives import archived
from tests.spark_jobs.data.outside_readers import arrow_table
from tests.spark_jobs.data.table_params import FORMATS
from tests.spark_jobs.kafka.producing import Record, create_topic, produce_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from spark_jobs.tables.table_format import TableFormat

ORDERS = Path(__file__).parents[3] / "examples" / "orders" / "orders.toml"


@pytest.mark.parametrize("kind", FORMATS)
def test_nested_values_are_read_outside_spark_as_they_were(
    kind: TableFormat,
    servers: str,
    spark: SparkSession,
    new_name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_name("orders")
    create_topic(servers, topic)
    lines = ORDERS.with_suffix(".jsonl").read_bytes().splitlines()
    produce_records(servers, topic, [Record(None, line) for line in lines])
    options = ArchiveOptions(
        bootstrap_servers=servers,
        topic=topic,
        definition=str(ORDERS),
        directory=tmp_path / "archive",
        checkpoint=tmp_path / "checkpoint",
        format=kind,
        once=True,
    )
    assert archived(spark, options) == len(lines)
    rows = arrow_table(options.directory).sort_by("offset").to_pylist()
    totals = [Decimal(text) for text in ("21.65", "1080.00", "0.30", "0.10")]
    assert [row["total"] for row in rows] == totals
    assert dict(rows[0]["taxes"]) == {"NY": Decimal("1.65")}
    assert rows[0]["customer"]["address"] == {"city": "New York", "zip_code": "10001"}
    assert rows[0]["items"][0] == {"sku": "tea", "quantity": 2, "price": Decimal("7.50")}
    assert rows[1]["placed"].isoformat() == "2013-03-11T03:59:59.500000+00:00"
    assert [row["deliver_on"] and row["deliver_on"].day for row in rows] == [12, None, 5, 5]
