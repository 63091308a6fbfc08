"""The fields of a definition that are those of an Avro schema."""

from __future__ import annotations

from typing import Any

import fastavro
import pytest

from spark_jobs.avro.avro_values import NotAvroError
from spark_jobs.avro.reader_schema import fields_of


def fields(**kinds: Any) -> dict[str, Any]:
    described = [{"name": name, "type": kind} for name, kind in kinds.items()]
    record = {"type": "record", "name": "A", "namespace": "n", "fields": described}
    return fields_of(fastavro.parse_schema(record))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("int", {"type": "integer"}),
        ("double", {"type": "number"}),
        ("boolean", {"type": "boolean"}),
        ({"type": "string", "logicalType": "uuid"}, {"type": "text"}),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, {"type": "text"}),
        ({"type": "fixed", "name": "F", "size": 4}, {"type": "binary"}),
        (["null", "long"], {"type": "integer", "nullable": True}),
        (["long", "string"], {"type": "json", "nullable": True}),
        ({"type": "int", "logicalType": "date"}, {"type": "date"}),
        ({"type": "long", "logicalType": "timestamp-micros"}, {"type": "timestamp"}),
        ({"type": "long", "logicalType": "unheard-of"}, {"type": "integer"}),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            {"type": "decimal(9,2)", "encoding": "text"},
        ),
        ({"type": "array", "items": "int"}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "map", "values": "int"}, {"type": "map", "values": {"type": "integer"}}),
    ],
)
def test_type_of_a_field_is_the_schemas(kind: Any, field: dict[str, Any]) -> None:
    assert fields(a=kind) == {"a": field}


def test_record_that_is_named_twice_is_an_object_twice() -> None:
    address = {"type": "record", "name": "B", "fields": [{"name": "s", "type": "string"}]}
    described = {"type": "object", "fields": {"s": {"type": "text"}}}
    assert fields(home=address, work="n.B") == {"home": described, "work": described}


def test_record_inside_itself_is_json() -> None:
    assert fields(next=["null", "n.A"]) == {"next": {"type": "json", "nullable": True}}


@pytest.mark.parametrize("schema", ["string", ["null", "string"], {"type": "map", "values": "int"}])
def test_schema_of_no_record_has_no_fields(schema: Any) -> None:
    with pytest.raises(NotAvroError):
        fields_of(fastavro.parse_schema(schema))
