"""The fields of a definition that names none: those of the reader's schema, with its types."""

from __future__ import annotations

from typing import Any

from spark_jobs.avro.avro_values import NotAvroError

Field = dict[str, Any]
"""As it would stand in a definition."""

PRIMITIVES = {
    "boolean": "boolean",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "string": "text",
    "enum": "text",
    "bytes": "binary",
    "fixed": "binary",
}
LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "local timestamp",
    "local-timestamp-micros": "local timestamp",
    "time-millis": "text",
    "time-micros": "text",
    "uuid": "text",
}
"""Logical types that fastavro reads; it takes others for the type below them."""


def fields_of(schema: Any) -> dict[str, Field]:  # noqa: ANN401 - fastavro's own
    """Return the fields of a record's schema; raise `NotAvroError` when it is no record's."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise NotAvroError("a definition needs the schema of a record")
    return _fields(schema, schema.get("__named_schemas", {}), ())


def _fields(schema: Field, named: dict[str, Any], around: tuple[str, ...]) -> dict[str, Field]:
    inside = (*around, schema["name"])
    return {field["name"]: _field(field["type"], named, inside) for field in schema["fields"]}


def _field(schema: Any, named: dict[str, Any], around: tuple[str, ...]) -> Field:  # noqa: ANN401
    if isinstance(schema, list):
        return _union(schema, named, around)
    if isinstance(schema, dict):
        return _described(schema, named, around)
    if schema in PRIMITIVES:
        return {"type": PRIMITIVES[schema]}
    if schema in around:  # a record inside itself has no columns
        return {"type": "json"}
    return _described(named[schema], named, around)


def _described(schema: Field, named: dict[str, Any], around: tuple[str, ...]) -> Field:
    kind, logical = schema["type"], str(schema.get("logicalType"))
    if kind == "record":
        return {"type": "object", "fields": _fields(schema, named, around)}
    if kind == "array":
        return {"type": "array", "items": _field(schema["items"], named, around)}
    if kind == "map":
        return {"type": "map", "values": _field(schema["values"], named, around)}
    if logical == "decimal":
        digits = f"decimal({schema['precision']},{schema.get('scale', 0)})"
        return {"type": digits, "encoding": "text"}
    return {"type": LOGICAL.get(logical) or PRIMITIVES[kind]}


def _union(schemas: list[Any], named: dict[str, Any], around: tuple[str, ...]) -> Field:
    others = [schema for schema in schemas if schema not in ("null", {"type": "null"})]
    if len(others) != 1:
        return {"type": "json", "nullable": True}
    field = _field(others[0], named, around)
    return field | ({"nullable": True} if len(others) < len(schemas) else {})
