"""A schema that evolves evolves the table: read from outside, and counted without Spark."""

from __future__ import annotations

import datetime as dt
import runpy
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.definitions import avro_format
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.jobs.archive import ArchiveOptions, start
from spark_jobs.options import DefinitionOptions
from spark_jobs.spark.streams import read_batch, run
from tests.spark_jobs.avro.test_decoded_rows import produce
from tests.spark_jobs.data.outside_readers import arrow_table
from tests.spark_jobs.registry.schema_texts import avro

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.spark_jobs.registry.registry_process import RegistryProcess

EXAMPLE = Path(__file__).parents[3] / "examples" / "avro_orders"
LINE = {"type": "record", "name": "Line", "fields": [{"name": "item", "type": "string"}]}
FIELDS = (
    ("id", "long"),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("total", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    ("lines", {"type": "array", "items": LINE}),
)
OLD = avro(*FIELDS)
NEW = avro(*FIELDS, ("coupon", ["null", "string"], None))


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "at": dt.datetime(2026, 11, 27, 8, number, 30, 500_000, tzinfo=dt.UTC),
        "total": Decimal(number * 1001) / 100,
        "lines": [{"item": f"é{line}"} for line in range(number % 3)],
    }


def archive(spark: SparkSession, options: ArchiveOptions) -> int:
    """Run the job to the end of the topic, as a process of its own would."""
    avro_format._latest.cache_clear()
    return run(start(spark, options), options)["archive"]


def test_new_schema_adds_its_column_to_the_archive(
    spark: SparkSession,
    servers: str,
    registries: tuple[RegistryProcess, RegistryProcess],
    new_name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_name("orders")
    definition = tmp_path / "orders.toml"
    definition.write_text('[record]\nformat = "avro"\nevent_time = "at"\n')
    options = ArchiveOptions(
        bootstrap_servers=servers,
        topic=topic,
        definition=str(definition),
        schema_registry=registries[1].url,
        checkpoint=tmp_path / "checkpoint",
        directory=tmp_path / "archive",
        once=True,
    )
    old = [order(number) for number in range(1, 6)]
    new = [order(number) | {"coupon": f"c{number}"} for number in range(6, 9)]
    produce(servers, registries[0], topic, [(OLD, record) for record in old])
    assert archive(spark, options) == 5
    produce(servers, registries[0], topic, [(NEW, record) for record in new])
    assert archive(spark, options) == 3
    rows = sorted(arrow_table(options.directory).to_pylist(), key=lambda row: row["id"])
    names = ("id", "at", "total", "lines", "coupon")
    assert [{name: row[name] for name in names} for row in rows] == [
        *(record | {"coupon": None} for record in old),
        *new,
    ]
    assert all(row["event_time"] == row["at"] for row in rows)


def test_example_has_the_orders_that_it_says(
    spark: SparkSession,
    servers: str,
    registries: tuple[RegistryProcess, RegistryProcess],
    new_name: Callable[[str], str],
) -> None:
    topic = new_name("example")
    program = runpy.run_path(str(EXAMPLE / "produce.py"))
    program["produce"](servers, registries[0].url, 60, topic)
    options = DefinitionOptions(
        bootstrap_servers=servers,
        topic=topic,
        definition=str(EXAMPLE / "orders.toml"),
        schema_registry=registries[1].url,
    )
    rows = parsed(spark, read_batch(spark, options, [topic]), options.load_definition())
    found = rows.select("order_id", "coupon", "rejection.reason").collect()
    assert Counter(row.reason for row in found) == {None: 59, "no-total": 1}
    coupons = {row.order_id for row in found if row.coupon is not None}
    assert coupons == set(range(30, 60, 3))
