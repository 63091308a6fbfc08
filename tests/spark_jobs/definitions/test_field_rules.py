"""Values of all types, right and wrong, at all depths: what becomes of each is in this table."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.typed_records import parsed
from tests.spark_jobs.definitions.kafka_rows import kafka_rows

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

DEFINITION = """
[record]
event_time = "timestamp_micros(0)"
[record.fields]
total = { type = "decimal(7,2)", low = 0, optional = true }
exact = { type = "decimal(38,2)", optional = true }
written = { type = "decimal(7,2)", encoding = "text", optional = true, nullable = true }
bytes = { type = "decimal(7,2)", encoding = "bytes", optional = true }
paid = { type = "boolean", optional = true }
day = { type = "date", optional = true, nullable = true, low = 2000-01-01 }
days = { type = "date", unit = "days", optional = true }
at = { type = "timestamp", optional = true, high = 2030-01-01T00:00:00Z }
there = { type = "timestamp", zone = "America/New_York", optional = true }
s = { type = "timestamp", unit = "seconds", optional = true }
ms = { type = "timestamp", unit = "milliseconds", optional = true }
us = { type = "timestamp", unit = "microseconds", optional = true }
clock = { type = "local timestamp", optional = true }
image = { type = "binary", optional = true }
any = { type = "json", optional = true }
tags = { type = "array", optional = true, items = { type = "text", pattern = "[a-z]+" } }
prices = { type = "map", optional = true, values = { type = "number", low = 0 } }
odd = { type = "integer", key = "@it's", optional = true }
[record.fields.address]
type = "object"
optional = true
fields.city = { type = "text" }
fields.zip_code = { type = "text", key = "zip-code", optional = true }
[record.fields.items]
type = "array"
optional = true
[record.fields.items.items]
type = "object"
fields.sku = { type = "text", one_of = ["a", "b"] }
fields.price = { type = "decimal(9,4)", low = 0.01 }
fields.at = { type = "timestamp", nullable = true, optional = true }
[record.fields.items.items.fields.notes]
type = "array"
optional = true
items = { type = "object", unknown_keys = "ignore", fields.n.type = "integer" }
"""
UTC = dt.UTC


def _utc(*numbers: int) -> dt.datetime:
    return dt.datetime(*numbers, tzinfo=UTC)  # type: ignore[misc,arg-type]


class Good(NamedTuple):
    """The text of a value, and what the column holds."""

    field: str
    text: str
    value: object


class Bad(NamedTuple):
    """The text of a value, and why it is rejected."""

    field: str
    text: str
    reason: str
    detail: str


A = '{"sku": "a", "price": 1.5}'
GOOD = (
    Good("total", "12345.67", Decimal("12345.67")),
    Good("total", "1.500", Decimal("1.50")),
    Good("total", "1.250e1", Decimal("12.50")),
    Good("total", "7", Decimal("7.00")),
    Good(
        "exact",
        "1234567890123456789012345678901234.56",
        Decimal("1234567890123456789012345678901234.56"),
    ),
    Good("written", '"12.50"', Decimal("12.50")),
    Good("written", "null", None),
    Good("bytes", '"MDk="', Decimal("123.45")),
    Good("bytes", '"z8c="', Decimal("-123.45")),
    Good("paid", "false", False),
    Good("day", '"2013-03-01"', dt.date(2013, 3, 1)),
    Good("day", '"9999-12-31"', dt.date(9999, 12, 31)),
    Good("day", "null", None),
    Good("days", "15765", dt.date(2013, 3, 1)),
    Good("at", '"2013-03-01T10:00:00.123456-05:00"', _utc(2013, 3, 1, 15, 0, 0, 123456)),
    Good("at", '"2013-03-01T10:00Z"', _utc(2013, 3, 1, 10)),
    Good("at", '"2013-03-01 10:00:00+0530"', _utc(2013, 3, 1, 4, 30)),
    Good("there", '"2013-03-01T10:00:00"', _utc(2013, 3, 1, 15)),
    Good("there", '"2013-07-01T10:00:00"', _utc(2013, 7, 1, 14)),
    Good("s", "1362130205.25", _utc(2013, 3, 1, 9, 30, 5, 250000)),
    Good("ms", "1362130205123", _utc(2013, 3, 1, 9, 30, 5, 123000)),
    Good("us", "1362130205123456", _utc(2013, 3, 1, 9, 30, 5, 123456)),
    Good("clock", '"2013-03-10T02:30:00"', dt.datetime(2013, 3, 10, 2, 30)),  # noqa: DTZ001
    Good("image", '"AQID"', b"\1\2\3"),
    Good("any", '{"a":[1,"x",null]}', '{"a":[1,"x",null]}'),
    Good("any", "null", None),
    Good("any", "[" * 100 + "]" * 100, "[" * 100 + "]" * 100),
    Good("tags", "[]", []),
    Good("tags", '["a", "b"]', ["a", "b"]),
    Good("prices", '{"a b": 1, "c": 2.5}', {"a b": 1.0, "c": 2.5}),
    Good("odd", "4", 4),
    Good("address", '{"city": "x"}', {"city": "x", "zip_code": None}),
    Good("address", '{"city": "x", "zip-code": "z"}', {"city": "x", "zip_code": "z"}),
    Good(
        "items",
        f'[{A}, {{"sku": "b", "price": 2, "at": null, "notes": [{{"n": 1, "m": 0}}]}}]',
        [
            {"sku": "a", "price": Decimal("1.5000"), "at": None, "notes": None},
            {"sku": "b", "price": Decimal("2.0000"), "at": None, "notes": [{"n": 1}]},
        ],
    ),
)
WRONG = "wrong-type"
BAD = (
    Bad("total", "1.005", WRONG, "total: expected decimal(7,2), got 1.005"),
    Bad("total", "123456.7", WRONG, "total: expected decimal(7,2), got 123456.7"),
    Bad("total", "1e400", WRONG, "total: expected decimal(7,2), got Infinity"),
    Bad("total", '"1.5"', WRONG, "total: expected decimal(7,2), got text"),
    Bad("total", "null", "null-value", "total"),
    Bad("total", "NaN", "not-json", "not one JSON value, in 14 bytes"),
    Bad("total", "-1", "impossible-number", "total -1.00"),
    Bad("total", "[" * 100 + "]" * 100, WRONG, "total: expected decimal(7,2), got array"),
    Bad("written", '"1.505"', WRONG, "written: expected decimal(7,2), got '1.505'"),
    Bad("written", '" 1"', WRONG, "written: expected decimal(7,2), got ' 1'"),
    Bad("bytes", '"f/////////8="', WRONG, "bytes: expected decimal(7,2), got 'f/////////8='"),
    Bad("bytes", '""', WRONG, "bytes: expected decimal(7,2), got ''"),
    Bad("paid", '"true"', WRONG, "paid: expected boolean, got text"),
    Bad("day", '"2013-02-30"', WRONG, "day: expected date, got '2013-02-30'"),
    Bad("day", '"10000-01-01"', WRONG, "day: expected date, got '10000-01-01'"),
    Bad("day", '"2013"', WRONG, "day: expected date, got '2013'"),
    Bad("day", '"1999-12-31"', "impossible-time", "day 1999-12-31"),
    Bad("days", "100000000000", WRONG, "days: expected date, got 100000000000"),
    Bad("at", '"2013-03-01T10:00:00"', WRONG, "at: expected timestamp, got '2013-03-01T10:00:00'"),
    Bad("at", '"2031-01-01T00:00:00Z"', "impossible-time", "at 2031-01-01 00:00:00"),
    Bad(
        "there",
        '"2013-03-01T10:00:00Z"',
        WRONG,
        "there: expected timestamp, got '2013-03-01T10:00:00Z'",
    ),
    Bad("ms", str(2**62), WRONG, f"ms: expected timestamp, got {2**62}"),
    Bad("ms", "1.5", WRONG, "ms: expected timestamp, got number"),
    Bad(
        "clock",
        '"2013-03-01T10:00:00Z"',
        WRONG,
        "clock: expected local timestamp, got '2013-03-01T10:00:00Z'",
    ),
    Bad("image", '"A!"', WRONG, "image: expected binary, got 'A!'"),
    Bad("tags", '["a", null]', "null-value", "tags[1]"),
    Bad("tags", '["a", 1]', WRONG, "tags[1]: expected text, got number"),
    Bad("tags", '["a", "B"]', "impossible-text", "tags[1] B"),
    Bad("tags", '["a", "b\\n"]', "impossible-text", "tags[1] b\n"),
    Bad("tags", "{}", WRONG, "tags: expected array, got object"),
    Bad("prices", '{"a b": 1, "c": null}', "null-value", "prices.c"),
    Bad("prices", '{"a b": 1, "c": "x"}', WRONG, "prices.c: expected number, got text"),
    Bad("prices", '{"a b": -1}', "impossible-number", "prices.a b -1.0"),
    Bad("odd", '"4"', WRONG, "@it's: expected integer, got text"),
    Bad("address", "{}", "missing-key", "address.city"),
    Bad("address", "null", "null-value", "address"),
    Bad("address", '{"city": 1}', WRONG, "address.city: expected text, got number"),
    Bad("address", '{"city": "x", "y": 1}', "unknown-key", "address.y"),
    Bad("address", '{"city": "x", "city": "y"}', "not-json", "not one JSON value, in 39 bytes"),
    Bad("items", f'[{A}, {{"sku": "b"}}]', "missing-key", "items[1].price"),
    Bad("items", f'[{A}, {{"sku": "b", "price": null}}]', "null-value", "items[1].price"),
    Bad(
        "items",
        f'[{A}, {{"sku": "b", "price": "2"}}]',
        WRONG,
        "items[1].price: expected decimal(9,4), got text",
    ),
    Bad(
        "items",
        f'[{A}, {{"sku": "b", "price": 0.001}}]',
        "impossible-number",
        "items[1].price 0.0010",
    ),
    Bad("items", f'[{A}, {{"sku": "c", "price": 1}}]', "impossible-text", "items[1].sku c"),
    Bad(
        "items",
        f'[{A}, {{"sku": "b", "price": 1, "at": "soon"}}]',
        WRONG,
        "items[1].at: expected timestamp, got 'soon'",
    ),
    Bad(
        "items",
        f'[{A}, {{"sku": "b", "price": 1, "notes": [{{}}]}}]',
        "missing-key",
        "items[1].notes[0].n",
    ),
    Bad("items", f'[{A}, {{"sku": "b", "price": 1, "noted": 1}}]', "unknown-key", "items[1].noted"),
    Bad("items", f"[{A}, null]", "null-value", "items[1]"),
    Bad("items", f"[{A}, 5]", WRONG, "items[1]: expected object, got number"),
)
WHOLE = {
    "[]": "expected an object, got array",
    "null": "expected an object, got null",
    '"x"': "expected an object, got text",
    "5": "expected an object, got number",
    "true": "expected an object, got boolean",
}


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Parse all values in one batch; rows by the text of the record."""
    path = tmp_path_factory.mktemp("types") / "types.toml"
    path.write_text(DEFINITION)
    definition = load_definition(str(path))
    texts = [_record(case) for case in (*GOOD, *BAD)]
    values = kafka_rows(spark, [text.encode() for text in (*texts, *WHOLE)])
    wanted = ["text", "rejection", *definition.record.fields]
    return {row["text"]: row for row in parsed(spark, values, definition).select(wanted).collect()}


def _record(case: Good | Bad) -> str:
    key = "@it's" if case.field == "odd" else case.field
    return f"{{{json.dumps(key)}: {case.text}}}"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return {name: _plain(one) for name, one in value.asDict().items()}  # type: ignore[attr-defined]
    return [_plain(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", GOOD, ids=_record)
def test_a_good_value_is_a_typed_column(case: Good, rows: dict[str, Row]) -> None:
    row = rows[_record(case)]
    assert row["rejection"] is None
    wanted = case.value
    if isinstance(wanted, dt.datetime) and wanted.tzinfo is not None:
        wanted = wanted.astimezone().replace(tzinfo=None)  # as Spark hands instants to Python
    assert _plain(row[case.field]) == wanted


@pytest.mark.parametrize("case", BAD, ids=_record)
def test_a_wrong_value_is_a_reject_that_names_its_path(case: Bad, rows: dict[str, Row]) -> None:
    assert tuple(rows[_record(case)]["rejection"]) == (case.reason, case.detail)


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_no_object_is_named_by_its_type_in_json(text: str, rows: dict[str, Row]) -> None:
    assert tuple(rows[text]["rejection"]) == ("not-an-object", WHOLE[text])
