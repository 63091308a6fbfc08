"""Framed values: decoded into the reader's schema, or rejected with a reason."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from spark_jobs.avro.avro_values import NotAvroError
from spark_jobs.avro.decoder import Decoded, Decoder
from spark_jobs.errors import JobError


def schema(*fields: Any) -> Any:
    described = [
        {"name": name, "type": kind, **({"default": default[0]} if default else {})}
        for name, kind, *default in fields
    ]
    return fastavro.parse_schema({"type": "record", "name": "A", "fields": described})


OLD = schema(("id", "int"))
NEW = schema(("id", "long"), ("note", ["null", "string"], None))
NOT_AVRO, AWAY = 8, 9


class KnownSchemas:
    """The schemas of a registry, by id; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.schemas: dict[int, Any] = {1: OLD, 2: NEW}

    def of_id(self, schema_id: int) -> Any:
        self.asked.append(schema_id)
        if schema_id == NOT_AVRO:
            raise NotAvroError("the schema is JSON")
        if schema_id == AWAY:
            raise JobError("schema registry http://r does not answer: refused")
        return self.schemas.get(schema_id)


def framed(schema_id: int, record: Any, writer: Any) -> bytes:
    buffer = io.BytesIO(struct.pack(">bi", 0, schema_id))
    buffer.seek(5)
    fastavro.schemaless_writer(buffer, writer, record)
    return buffer.getvalue()


def decoded(value: bytes | None, reader: Any = NEW, known: KnownSchemas | None = None) -> Decoded:
    (found,) = Decoder(reader, 100, known or KnownSchemas()).decode([value])
    return found


def test_old_record_gets_the_defaults_of_the_readers_schema() -> None:
    assert decoded(framed(1, {"id": 7}, OLD)) == Decoded('{"id": 7, "note": null}')


def test_new_record_loses_what_the_reader_does_not_know() -> None:
    assert decoded(framed(2, {"id": 7, "note": "é"}, NEW), OLD.copy()).reason == "not-the-schema"
    narrow = schema(("note", ["null", "string"]))
    assert decoded(framed(2, {"id": 7, "note": "é"}, NEW), narrow) == Decoded('{"note": "é"}')


def test_types_that_json_lacks_are_text() -> None:
    kinds = {
        "total": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "day": {"type": "int", "logicalType": "date"},
        "at": {"type": "long", "logicalType": "timestamp-millis"},
        "raw": "bytes",
    }
    typed = schema(*kinds.items())
    at = dt.datetime(2026, 11, 27, 8, tzinfo=dt.UTC)
    record = {"total": Decimal("12.50"), "day": at.date(), "at": at, "raw": b"\xff"}
    known = KnownSchemas()
    known.schemas[3] = typed
    text = decoded(framed(3, record, typed), typed, known).text
    assert json.loads(text or "") == {
        "total": "12.50",
        "day": "2026-11-27",
        "at": "2026-11-27T08:00:00+00:00",
        "raw": "/w==",
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"id":1}', "not-framed"),
        (b"\x00\x00\x00\x00", "not-framed"),
        (b"\x01\x00\x00\x00\x01\x02", "not-framed"),
        (b"\x00\x00\x00\x00\x07\x02", "unknown-schema"),
        (b"\x00\xff\xff\xff\xff\x02", "unknown-schema"),
        (b"\x00\x00\x00\x00\x08\x02", "not-avro"),
        (b"\x00\x00\x00\x00\x01", "not-the-schema"),
        (b"\x00\x00\x00\x00\x01\x02\x02", "not-the-schema"),
        (b"\x00\x00\x00\x00\x02\x02\x02\x04\xff", "not-the-schema"),
        (b"\x00\x00\x00\x00\x02\x02\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "not-the-schema"),
        (b"\x00\x00\x00\x00\x02\x02\x06", "not-the-schema"),
    ],
)
def test_value_that_does_not_decode_has_a_reason(value: bytes, reason: str) -> None:
    found = decoded(value)
    assert (found.text, found.reason) == (None, reason)
    assert found.detail


def test_number_that_json_cannot_write_is_rejected() -> None:
    typed = schema(("a", "double"))
    known = KnownSchemas()
    known.schemas[3] = typed
    assert decoded(framed(3, {"a": float("nan")}, typed), typed, known).reason == "not-the-schema"


@pytest.mark.parametrize("value", [None, b"", bytes(101)])
def test_value_that_other_rules_reject_is_left_to_them(value: bytes | None) -> None:
    assert decoded(value) == Decoded()


def test_registry_is_asked_for_an_unknown_id_once_in_a_batch() -> None:
    known = KnownSchemas()
    decoder = Decoder(NEW, 100, known)
    assert {one.reason for one in decoder.decode([b"\0\0\0\0\x07a"] * 3)} == {"unknown-schema"}
    known.schemas[7] = OLD
    assert decoder.decode([b"\0\0\0\0\x07\x02"] * 3)[0].text == '{"id": 1, "note": null}'
    assert known.asked == [7, 7]


def test_registry_that_is_away_is_no_reason_to_reject() -> None:
    with pytest.raises(JobError, match="does not answer"):
        decoded(b"\x00\x00\x00\x00\x09\x02")
