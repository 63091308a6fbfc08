"""The definitions of examples/ and their data: sums and rows, counted without Spark too."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from spark_jobs.definition_tools.definition_check import checked
from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.log_formats import parsed_lines
from spark_jobs.definitions.outputs import json_sql
from spark_jobs.definitions.routes import RouteSection
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.definitions.window_aggregates import window_rows
from spark_jobs.spark.streams import records_of
from tests.spark_jobs.definitions.kafka_rows import kafka_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[3] / "examples"
ORDERS = EXAMPLES / "orders" / "orders.toml"
ACCESS = EXAMPLES / "access_logs" / "access.toml"
CUSTOMERS = EXAMPLES / "customer_changes" / "customers.toml"
NEW_YORK = ZoneInfo("America/New_York")


def _lines(definition: Path) -> list[Any]:
    text = definition.with_suffix(".jsonl").read_text(encoding="utf-8")
    return [json.loads(line, parse_float=Decimal) for line in text.splitlines()]


@pytest.mark.parametrize("path", [ORDERS, CUSTOMERS, ACCESS], ids=lambda path: path.stem)
def test_nothing_is_wrong_with_the_definition(path: Path) -> None:
    assert checked(path) == []


def test_orders_are_summed_by_days_of_new_york(spark: SparkSession) -> None:
    definition = load_definition(str(ORDERS))
    texts = ORDERS.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    rows = parsed(spark, kafka_rows(spark, [text.encode() for text in texts]), definition).cache()
    rejects = [tuple(row) for row in rows.select("order_id", "rejection.*").collect() if row[1]]
    assert rejects == [
        (5, "wrong-type", "items[0].price: expected decimal(12,2), got 5.005"),
        (6, "wrong-total", "total 4.00, items 5.00, taxes 0.00"),
        (7, "missing-key", "customer.address.zip-code"),
    ]
    wanted: dict[tuple[str, str], list[Any]] = defaultdict(lambda: [0, Decimal(0)])
    for order in _lines(ORDERS)[:4]:
        found = wanted[_local_day(order["placed"]), order["currency"]]
        found[0] += 1
        found[1] += Decimal(order["total"])
    windows = [
        json.loads(record["value"], parse_float=Decimal)
        for record in records_of(
            window_rows(spark, rows, definition, "sales"), ("granularity", "start"), "sales"
        ).collect()
    ]
    days = [window for window in windows if window["granularity"] == "1 day"]
    assert {
        (_local_day(one["start"]), one["currency"]): [one["orders"], one["total"]] for one in days
    } == wanted
    hours = [one for one in windows if one["granularity"] == "1 hour" and one["currency"] == "EUR"]
    assert sorted(one["start"] for one in hours) == ["2013-11-03T05:00:00Z", "2013-11-03T06:00:00Z"]
    section = definition.section("route", RouteSection)
    output = rows.selectExpr(f"{json_sql(section, definition.record, ('event_time',))} AS output")
    first = json.loads(output.head()["output"], parse_float=Decimal)  # type: ignore[index]
    assert first["placed"] == "2013-03-10T05:30:00.000000Z"
    assert first["items"][0] == {"sku": "tea", "quantity": 2, "price": Decimal("7.50")}
    rows.unpersist()


def test_pages_of_access_logs_are_counted_by_days_of_new_york(spark: SparkSession) -> None:
    definition = load_definition(str(ACCESS))
    lines = ACCESS.with_suffix(".log").read_bytes().splitlines()
    records = kafka_rows(spark, lines, [b"web-1:access.log"] * len(lines))
    records = records.selectExpr("*", "TIMESTAMP '2013-11-05' AS collected").drop("timestamp")
    rows = parsed_lines(records.withColumnRenamed("collected", "timestamp"), definition)
    rejected = rows.where("rejection IS NOT NULL").select("line").collect()
    others = [line.decode() for line in lines if not re.search(rb'"[A-Z]+ /', line)]
    assert [row["line"] for row in rejected] == others
    wanted: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    request = re.compile(r'\[(.+)\] "[A-Z]+ ([^ ?]+)[^"]*" (\d+) (\d+|-) ')
    for found in filter(None, map(request.search, map(bytes.decode, lines))):
        at = dt.datetime.strptime(found[1], "%d/%b/%Y:%H:%M:%S %z")
        sums = wanted[_local_day(at.isoformat()), found[2]]
        for place, number in enumerate((1, found[3] >= "500", found[4].replace("-", "0"))):
            sums[place] += int(number)
    windows = window_rows(spark, rows, definition, "pages").where("granularity = '1 day'")
    assert {
        (_local_day(f"{day.start}+00:00"), day.page): [day.requests, day.failed, day.bytes_sent]
        for day in windows.collect()
    } == wanted


def _local_day(text: str) -> str:
    return dt.datetime.fromisoformat(text).astimezone(NEW_YORK).date().isoformat()


def test_changes_leave_the_rows_that_the_database_has(spark: SparkSession) -> None:
    definition = load_definition(str(CUSTOMERS))
    lines = _lines(CUSTOMERS)
    values = [json.dumps(one["value"]).encode() if one["value"] else None for one in lines]
    keys = [json.dumps(one["key"]).encode() for one in lines]
    rows = parsed(spark, kafka_rows(spark, values, keys), definition)
    last: dict[int, Any] = {}
    for row in rows.orderBy("offset").collect():
        assert row["rejection"] is None
        last[row["id"]] = None if row["op"] in {"d", "tombstone"} else row
    kept = {
        number: (row["name"], row["balance"], row["tags"]) for number, row in last.items() if row
    }
    assert kept == {
        1: ("Ann", Decimal("-2.50"), ["new", "gold"]),
        3: ("Cy", Decimal("9999999999.99"), ["a"]),
    }
    assert last[1]["birthday"].isoformat() == "1980-12-31"
    assert last[1]["created"].microsecond == 123_456
