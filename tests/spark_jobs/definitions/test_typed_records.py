"""SQL of a definition that Spark refuses is named before any record is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import BadOptionError
from tests.spark_jobs.data.month import FEED

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KAFKA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
SMALL = """
[record]
event_time = "to_timestamp(at)"
[record.fields]
at = { type = "text" }
size = { type = "integer" }
[record.columns]
double = "size * 2"
[[record.rules]]
reason = "too-many"
when = "double > 5"
detail = "size"
[[record.rules]]
reason = "too-few"
when = "double < 2"
detail = "concat('only ', size)"
"""


def _definition(tmp_path: Path, text: str) -> str:
    path = tmp_path / "small.toml"
    path.write_text(text)
    return str(path)


def test_what_is_right_gives_typed_columns(spark: SparkSession, tmp_path: Path) -> None:
    values = [b'{"at":"2013-03-01T10:00:00Z","size":%d}' % size for size in (2, 3, 0)]
    records = spark.createDataFrame(
        [(None, bytearray(value), "t", 0, index, None) for index, value in enumerate(values)], KAFKA
    )
    rows = parsed(spark, records, load_definition(_definition(tmp_path, SMALL))).collect()
    assert [(row["double"], row["rejection"] and tuple(row["rejection"])) for row in rows] == [
        (4, None),
        (6, ("too-many", "3")),
        (0, ("too-few", "only 0")),
    ]


@pytest.mark.parametrize("condition", ["rejection IS NULL", "rejection IS NOT NULL"])
def test_a_filter_on_rejections_parses_no_record_again(
    condition: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    records = spark.createDataFrame([(None, bytearray(b"{}"), "t", 0, 0, None)], KAFKA)
    rows = parsed(spark, records, load_definition("activity")).select("visitor", "rejection")
    times = []
    for each in (rows, rows.where(condition)):
        each.explain()
        times.append(capsys.readouterr().out.count(".parseJson("))
    assert times[0] == times[1] > 0


@pytest.mark.parametrize("time_hour", ["+294246-12-31T00:00:00Z", "-290308-12-21T20:00:00Z"])
def test_a_flight_at_the_end_of_all_times_is_rejected_and_ends_no_job(
    time_hour: str, spark: SparkSession
) -> None:
    line = next(FEED.lines(FEED.flights()))
    flight = json.loads(line.value or b"") | {"time_hour": time_hour, "minute": 2**31 - 1}
    value = bytearray(json.dumps(flight).encode())
    records = spark.createDataFrame([(None, value, "t", 0, 0, None)], KAFKA)
    rows = parsed(spark, records, load_definition("flights"))
    [row] = rows.select("rejection.reason", "event_time").collect()
    assert tuple(row) == ("impossible-time", None)


@pytest.mark.parametrize(
    ("changed", "to", "message"),
    [
        (
            "double > 5",
            "double + 5",
            "rules.0.when: expected a condition, 'double [+] 5' is bigint",
        ),
        ("double < 2", "dubble < 2", "rules.1.when: .*`dubble` cannot be resolved"),
        ("concat('only ', size)", "concat(", "rules.1.detail: .*[Ss]yntax error"),
        ("double > 5", "count(1) > 5", "rules.0.when: .*GROUP BY"),
        ("size * 2", "size *", "columns.double: .*[Ss]yntax error"),
        ("to_timestamp(at)", "to_timestamp(of)", "event_time: .*`of` cannot be resolved"),
    ],
)
def test_a_mistake_is_named(
    changed: str, to: str, message: str, spark: SparkSession, tmp_path: Path
) -> None:
    records = spark.createDataFrame([], KAFKA)
    definition = load_definition(_definition(tmp_path, SMALL.replace(changed, to)))
    with pytest.raises(BadOptionError, match=rf"^--definition: .*small\.toml: record\.{message}"):
        parsed(spark, records, definition)


TYPED = """
[record]
event_time = "timestamp_micros(0)"
[record.fields]
whole = { type = "integer" }
number = { type = "number" }
words = { type = "text", nullable = true }
truth = { type = "boolean" }
"""
GOOD = {
    "whole": ["0", "-0", "9223372036854775807", "-9223372036854775808"],
    "number": [
        *("1", "-0.0", "0.1", "1e3", "1E-400", "1E400", "123456789012345678901234567890.5"),
        *("179769313486231570000000000000000000000", "0.1000000000000000055511151231257827"),
    ],
    "words": [
        '"a"',
        '""',
        "null",
        r'"\n\" \\ \/ \u00e9 \ud83d\ude00"',
        '"😀 ]}"',
        r'"\u0000"',
        '"1"',
    ],
    "truth": ["true", "false"],
}


def test_fields_of_good_types_are_what_a_variant_makes_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """They are parsed by another of Spark's parsers, which is faster."""
    path = tmp_path / "typed.toml"
    path.write_text(TYPED)
    first = {name: texts[0] for name, texts in GOOD.items()}
    objects = [first | {name: text} for name, texts in GOOD.items() for text in texts]
    lines = [", ".join(f'"{name}" :{text}' for name, text in o.items()) for o in objects]
    values = [f" {{{line}}}\n" for line in lines]
    records = spark.createDataFrame(
        [(None, bytearray(value.encode()), "t", 0, n, None) for n, value in enumerate(values)],
        KAFKA,
    )
    struct = "struct<whole:bigint,number:double,words:string,truth:boolean>"
    rows = (
        parsed(spark, records, load_definition(str(path)))
        .selectExpr(
            "is_typed",
            "struct(whole, number, words, truth) AS found",
            f"try_variant_get(try_parse_json(text), '$', '{struct}') AS wanted",
        )
        .collect()
    )
    assert len(rows) == len(values)
    assert all(row["is_typed"] for row in rows)
    assert [row["found"] for row in rows] == [row["wanted"] for row in rows]
