"""Debezium's envelope: rows with op and key, by which a table follows a database."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.definition import Record, load_definition
from spark_jobs.definitions.typed_records import parsed
from tests.spark_jobs.definitions.kafka_rows import kafka_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

DEFINITION = """
[record]
envelope = "debezium"
key = ["id"]
event_time = "coalesce(changed_at, timestamp)"
[record.fields]
id = { type = "integer" }
total = { type = "decimal(12,2)", encoding = "bytes", low = 0 }
state = { type = "text", nullable = true }
"""
SCHEMA = {"type": "struct", "fields": []}
SOURCE = {"db": "shop", "table": "orders", "ts_ms": 1362130205123, "pos": 4}


def _row(number: int, total: str = "MDk=", state: str | None = "new") -> dict[str, Any]:
    return {"id": number, "total": total, "state": state}


def _change(
    op: str, before: object, after: object, *, is_wrapped: bool = True, **more: object
) -> bytes:
    payload = {"before": before, "after": after, "source": SOURCE, "op": op, "ts_ms": 7} | more
    return json.dumps({"schema": SCHEMA, "payload": payload} if is_wrapped else payload).encode()


def _key(number: int, *, is_wrapped: bool = True) -> bytes:
    payload = {"id": number}
    return json.dumps({"schema": SCHEMA, "payload": payload} if is_wrapped else payload).encode()


def _parsed(
    spark: SparkSession, tmp_path: Path, records: Sequence[tuple[bytes | None, bytes | None]]
) -> DataFrame:
    path = tmp_path / "orders.toml"
    path.write_text(DEFINITION)
    keys, values = [key for key, _ in records], [value for _, value in records]
    return parsed(spark, kafka_rows(spark, values, keys), load_definition(str(path)))


def test_a_table_follows_its_database(spark: SparkSession, tmp_path: Path) -> None:
    records = [
        (_key(1), _change("r", None, _row(1))),
        (_key(2), _change("c", None, _row(2, "AA==", None))),
        (_key(3, is_wrapped=False), _change("c", None, _row(3), is_wrapped=False)),
        (_key(1), _change("u", _row(1), _row(1, "Abc=", "paid"))),
        (_key(2), _change("d", {"id": 2}, None)),
        (_key(2), None),
        (_key(3, is_wrapped=False), _change("d", None, None, is_wrapped=False)),
        (_key(4), _change("c", None, _row(4))),
        (_key(4), b""),
    ]
    rows = _parsed(spark, tmp_path, records).cache()
    assert rows.where("rejection IS NOT NULL").count() == 0
    ops = [tuple(row) for row in rows.select("id", "op").orderBy("offset").collect()]
    gone = "tombstone"
    assert ops == [*zip((1, 2, 3, 1, 2, 2, 3, 4, 4), [*"rccud", gone, *"dc", gone], strict=True)]
    last = rows.groupBy("id").agg(F.expr("max_by(struct(op, total, state), offset) AS last"))
    kept = last.where("last.op NOT IN ('d', 'tombstone')").select("id", "last.total", "last.state")
    assert [tuple(row) for row in kept.collect()] == [(1, Decimal("4.39"), "paid")]
    update = rows.where("op = 'u'").select("before", "change_source", "changed_at").first()
    assert update is not None
    assert json.loads(update["before"]) == _row(1)
    assert json.loads(update["change_source"]) == SOURCE
    assert update["changed_at"].microsecond == 123_000
    rows.unpersist()


BAD = {
    "no op": (_change("c", None, _row(1)).replace(b'"op"', b'"po"'), "not-an-envelope"),
    "truncate": (_change("t", None, None), "not-an-envelope"),
    "no row": (_change("u", _row(1), None), "not-an-envelope"),
    "a row that is none": (_change("c", None, [1]), "not-an-envelope"),
    "not json": (b"{", "not-json"),
    "no object": (b"[1]", "not-an-object"),
    "a key that is missing": (_change("c", None, {"id": 1, "total": "AA=="}), "missing-key"),
    "a column that is unknown": (_change("c", None, _row(1) | {"x": 1}), "unknown-key"),
    "a wrong decimal": (_change("c", None, _row(1, "!")), "wrong-type"),
    "below its range": (_change("c", None, _row(1, "z8c=")), "impossible-number"),
}


def test_what_is_no_change_is_a_reject(spark: SparkSession, tmp_path: Path) -> None:
    records: list[tuple[bytes | None, bytes | None]] = []
    records += [(_key(1), value) for value, _ in BAD.values()]
    records += [(None, None), (b"x", None), (None, _change("d", None, None))]
    rows = _parsed(spark, tmp_path, records).select("rejection.reason").collect()
    wanted = [*(reason for _, reason in BAD.values()), *["missing-key"] * 3]
    assert [row["reason"] for row in rows] == wanted


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"key": []}, "an envelope has 'key'"),
        ({"envelope": None}, "an envelope has 'key'"),
        ({"key": ["ib"]}, "there is no field 'ib'"),
        (
            {"fields": {"id": {"type": "text"}, "op": {"type": "text"}}},
            "there are two columns 'op'",
        ),
    ],
)
def test_an_envelope_names_the_key_of_its_rows(changed: dict[str, object], words: str) -> None:
    record = {"envelope": "debezium", "key": ["id"], "fields": {"id": {"type": "text"}}}
    assert Record.model_validate(record).key == ("id",)
    with pytest.raises(ValidationError, match=words):
        Record.model_validate(record | changed)
