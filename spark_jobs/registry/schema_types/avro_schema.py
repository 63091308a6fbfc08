"""Avro: parsed, and compared, by Apache Avro's own Python library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.errors import AvroException
from avro.name import Names
from avro.schema import make_avsc_object

from spark_jobs.registry.schema_types.schema_type import (
    InvalidSchemaError,
    ParsedSchema,
    SchemaType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PRIMITIVES = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"},
)
NAMED = ("record", "error", "enum", "fixed")
ORDER = (
    *("type", "name", "namespace", "doc", "fields", "symbols", "items", "values", "size"),
    *("logicalType", "precision", "scale", "default", "order", "aliases"),
)
"""Keys as Apache Avro writes them; the others follow as they came."""

ORDER_OF_FIELDS = ("name", *(key for key in ORDER if key != "name"))


def parse(text: str, references: Mapping[str, str]) -> ParsedSchema:
    """Read an Avro schema; a text without quotes is the name of a type."""
    names = Names()
    try:
        for referred in references.values():
            make_avsc_object(json.loads(referred), names)
        document = json.loads(text) if text.lstrip()[:1] in {"{", "[", '"'} else text.strip()
        model = make_avsc_object(document, names)
    except (AvroException, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidSchemaError(str(error).partition("\n")[0]) from error
    except RecursionError as error:
        raise InvalidSchemaError("nested too deeply") from error
    canonical = _text(_ordered(document, normalise=False))
    return ParsedSchema(canonical, canonical, _text(_ordered(document, normalise=True)), model)


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> list[str]:
    """Say why `reader` does not resolve what `writer` wrote, by Avro's rules."""
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    result = checker.get_compatibility(reader.model, writer.model)
    if result.compatibility is SchemaCompatibilityType.compatible:
        return []
    kinds = [kind.name.upper() for kind in result.incompatibilities]
    found = zip(kinds, sorted(result.messages), strict=False)
    return [f"{kind}: {message}" for kind, message in found] or kinds or ["INCOMPATIBLE"]


AVRO = SchemaType(parse, incompatibilities)


def _text(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _ordered(document: Any, *, normalise: bool) -> Any:  # noqa: ANN401 - JSON
    """Return the schema with its keys in order, and types of nothing but a name as that name."""
    if isinstance(document, list):
        return [_ordered(item, normalise=normalise) for item in document]
    if not isinstance(document, dict):
        return document
    if set(document) == {"type"} and document["type"] in PRIMITIVES:
        return document["type"]
    # A field is what has a name and a type that is none of a named type.
    is_field = "name" in document and document.get("type") not in NAMED
    order = ORDER_OF_FIELDS if is_field else ORDER
    others = [key for key in document if key not in ORDER]
    keys = [*(key for key in order if key in document), *(sorted(others) if normalise else others)]
    nested = ("type", "fields", "items", "values")
    return {
        key: _ordered(document[key], normalise=normalise) if key in nested else document[key]
        for key in keys
    }
