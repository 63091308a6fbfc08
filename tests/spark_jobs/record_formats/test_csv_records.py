"""Lines of CSV: what becomes of each."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from spark_jobs.definitions.definition import Record, load_definition
from spark_jobs.definitions.typed_records import parsed
from tests.spark_jobs.definitions.kafka_rows import kafka_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DEFINITION = """
[record]
format = "csv"
header = ["id", "name", "left out", "price", "day", "paid", "seen"]
event_time = "seen"
[record.fields]
id = { type = "integer", low = 1 }
name = { type = "text", nullable = true }
price = { type = "decimal(7,2)" }
day = { type = "date", nullable = true }
paid = { type = "boolean", nullable = true }
seen = { type = "timestamp", unit = "seconds" }
later = { type = "integer", optional = true }
"""
DAY = dt.date(2013, 3, 1)
GOOD = {
    "1,a,x,12.50,2013-03-01,true,1362130205": (1, "a", Decimal("12.50"), DAY, True, None),
    '2,"b ""q"", c",,7,,,1362130205\r\n': (2, 'b "q", c', Decimal("7.00"), None, None, None),
    '3,"two\nlines",,7,,false,1362130205\n': (3, "two\nlines", Decimal("7.00"), None, False, None),
    "4,,,7,,,1362130205": (4, None, Decimal("7.00"), None, None, None),
}
BAD = {
    "": ("empty", "the record has no value"),
    "1,a": ("not-csv", "expected one line of 7 columns"),
    "1,a,x,1,,,1,8": ("not-csv", "expected one line of 7 columns"),
    '1,"a,x,1,,,1': ("not-csv", "expected one line of 7 columns"),
    "1,a,x,1,,,1\n2,a,x,1,,,1": ("not-csv", "expected one line of 7 columns"),
    ",a,x,1,,,1": ("null-value", "id"),
    "x,a,x,1,,,1": ("wrong-type", "id: expected integer, got 'x'"),
    "1.5,a,x,1,,,1": ("wrong-type", "id: expected integer, got '1.5'"),
    "18446744073709551616,a,x,1,,,1": (
        "wrong-type",
        "id: expected integer, got '18446744073709551616'",
    ),
    "0,a,x,1,,,1": ("impossible-number", "id 0"),
    "1,a,x,1.005,,,1": ("wrong-type", "price: expected decimal(7,2), got '1.005'"),
    "1,a,x,1,2013-02-30,,1": ("wrong-type", "day: expected date, got '2013-02-30'"),
    "1,a,x,1,,yes,1": ("wrong-type", "paid: expected boolean, got 'yes'"),
    "1,a,x,1,,,soon": ("wrong-type", "seen: expected timestamp, got 'soon'"),
    "1,a,x,NaN,,,1": ("wrong-type", "price: expected decimal(7,2), got 'NaN'"),
}


def test_a_line_is_typed_columns_or_a_reject(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "lines.toml"
    path.write_text(DEFINITION)
    definition = load_definition(str(path))
    values = kafka_rows(spark, [text.encode() for text in (*GOOD, *BAD)])
    names = ["text", "rejection", "id", "name", "price", "day", "paid", "later"]
    found = {row[0]: row[1:] for row in parsed(spark, values, definition).select(names).collect()}
    assert {text: found[text][1:] for text in GOOD if found[text][0] is None} == GOOD
    assert {text: tuple(found[text][0] or ()) for text in BAD} == BAD


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"header": ["b"]}, "the header lacks 'a'"),
        ({"format": "json"}, "only CSV has a header"),
        ({"fields": {"a": {"type": "map", "values": {"type": "text"}}}}, "CSV has neither"),
        ({"delimiter": "::"}, "at most 1 character"),
    ],
)
def test_csv_is_flat_and_its_header_names_all_fields(
    changed: dict[str, object], words: str
) -> None:
    record = {"format": "csv", "header": ["a"], "fields": {"a": {"type": "text"}}}
    assert Record.model_validate(record).csv_header() == ("a",)
    with pytest.raises(ValidationError, match=words):
        Record.model_validate(record | changed)
