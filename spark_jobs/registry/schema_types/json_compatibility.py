"""Whether one JSON Schema takes all that another takes: Confluent's rules, where they can be told.

The names of differences are Confluent's. Its rules about content models come first: a property
that is added to an object which took any property is a narrowing, as a value may hold it already
with another type. What is not compared by rule (`not`, `if`, `patternProperties`, dependencies,
`contains`) must be equal, or absent in the reader.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
EQUAL = (
    *("pattern", "format", "const", "not", "if", "then", "else", "patternProperties", "contains"),
    *("dependencies", "dependentRequired", "dependentSchemas", "propertyNames"),
    *("prefixItems", "additionalItems", "unevaluatedProperties"),
)
"""Keywords that only narrow what is taken, compared as they stand."""

CHOICES = ("oneOf", "anyOf")
TYPES = frozenset({"string", "number", "boolean", "object", "array", "null"})


def differences(
    reader: Any,  # noqa: ANN401 - JSON, as below
    reader_references: Mapping[str, Any],
    writer: Any,  # noqa: ANN401
    writer_references: Mapping[str, Any],
) -> list[str]:
    """Return why a value that `writer` takes may be none for `reader`, with a path to each."""
    sides = _Sides(reader, reader_references, writer, writer_references)
    return list(_schema(sides, "#", reader, writer))


@dataclass(slots=True)
class _Sides:
    """The two documents, for `$ref`, and what has been compared of them."""

    reader: Any
    reader_references: Mapping[str, Any]
    writer: Any
    writer_references: Mapping[str, Any]
    compared: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Differences by the references of both sides; none for those under comparison, since a schema
    that recurs takes what another takes if it does so but for itself."""


def _schema(sides: _Sides, path: str, reader: Any, writer: Any) -> Iterator[str]:  # noqa: ANN401
    pair = (_ref(reader), _ref(writer))
    if pair == ("", ""):
        yield from _resolved_schema(sides, path, reader, writer)
        return
    if pair not in sides.compared:
        sides.compared[pair] = []
        reader = _resolved(reader, sides.reader, sides.reader_references)
        writer = _resolved(writer, sides.writer, sides.writer_references)
        sides.compared[pair] = list(_resolved_schema(sides, path, reader, writer))
    yield from sides.compared[pair]


def _resolved_schema(
    sides: _Sides,
    path: str,
    reader: Any,  # noqa: ANN401
    writer: Any,  # noqa: ANN401
) -> Iterator[str]:
    if reader in (True, {}) or writer is False or reader == writer:
        return
    if reader is False:
        yield f"TYPE_CHANGED: {path} takes nothing any more"
        return
    writer = {} if writer is True else writer
    choices = [key for key in CHOICES if key in writer]
    if choices and not any(key in reader for key in CHOICES):
        rest = {key: value for key, value in writer.items() if key != choices[0]}
        for branch in writer[choices[0]]:
            chosen = _resolved(branch, sides.writer, sides.writer_references)
            if chosen is not False:
                whole = rest if chosen is True else {**rest, **chosen}
                yield from _resolved_schema(sides, path, reader, whole)
        return
    yield from _types(path, reader, writer)
    yield from _combined(sides, path, reader, writer)
    yield from _scalars(path, reader, writer)
    yield from _properties(sides, path, reader, writer)
    yield from _required(path, reader, writer)
    if "items" in reader:
        yield from _schema(sides, f"{path}/items", reader["items"], writer.get("items", True))


def _ref(schema: Any) -> str:  # noqa: ANN401
    return str(schema.get("$ref", "")) if isinstance(schema, dict) else ""


def _resolved(schema: Any, root: Any, references: Mapping[str, Any]) -> Any:  # noqa: ANN401
    for _ in range(100):
        reference = _ref(schema)
        if not reference:
            break
        name, _, pointer = reference.partition("#")
        target = references.get(name) if name else root
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, dict) else None
        if target is None:
            break
        root, schema = (target if name else root), target
    return schema


def _types(path: str, reader: Mapping[str, Any], writer: Mapping[str, Any]) -> Iterator[str]:
    taken, written = _type_set(reader), _type_set(writer)
    lost = {kind for kind in written - taken if not (kind == "integer" and "number" in taken)}
    if lost:
        yield f"TYPE_NARROWED: {path} takes no {', '.join(sorted(lost))} any more"


def _type_set(schema: Mapping[str, Any]) -> frozenset[str]:
    named = schema.get("type")
    if named is None:
        return TYPES
    return frozenset([named] if isinstance(named, str) else named)


def _scalars(path: str, reader: Mapping[str, Any], writer: Mapping[str, Any]) -> Iterator[str]:
    for keyword in (*UPPER_BOUNDS, *LOWER_BOUNDS):
        if keyword in reader and _is_narrower(keyword, reader, writer):
            change = "DECREASED" if keyword in UPPER_BOUNDS else "INCREASED"
            yield f"{_name(keyword)}_{_change(keyword, writer, change)}: {path}/{keyword}"
    step = reader.get("multipleOf")
    if step is not None and ("multipleOf" not in writer or writer["multipleOf"] % step):
        yield f"MULTIPLE_OF_{_change('multipleOf', writer, 'CHANGED')}: {path}/multipleOf"
    if reader.get("uniqueItems") and not writer.get("uniqueItems"):
        yield f"UNIQUE_ITEMS_ADDED: {path}/uniqueItems"
    if "enum" in reader:
        written = writer.get("enum", [writer["const"]] if "const" in writer else None)
        if written is None or any(value not in reader["enum"] for value in written):
            yield f"ENUM_ARRAY_NARROWED: {path}/enum"
    for keyword in EQUAL:
        if keyword in reader and reader[keyword] != writer.get(keyword):
            yield f"{_name(keyword)}_{_change(keyword, writer, 'CHANGED')}: {path}/{keyword}"


def _is_narrower(keyword: str, reader: Mapping[str, Any], writer: Mapping[str, Any]) -> bool:
    if keyword not in writer:
        return True
    sign = 1 if keyword in UPPER_BOUNDS else -1
    narrower: bool = sign * reader[keyword] < sign * writer[keyword]
    return narrower


def _name(keyword: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in keyword).upper()


def _change(keyword: str, writer: Mapping[str, Any], change: str) -> str:
    return change if keyword in writer else "ADDED"


def _combined(
    sides: _Sides, path: str, reader: Mapping[str, Any], writer: Mapping[str, Any]
) -> Iterator[str]:
    """Each way in which a value may be written must be one in which it may be read."""
    for keyword in CHOICES:
        if keyword not in reader:
            continue
        written = next((writer[key] for key in CHOICES if key in writer), [writer])
        for index, branch in enumerate(written):
            if all(any(_schema(sides, path, choice, branch)) for choice in reader[keyword]):
                yield f"COMBINED_TYPE_SUBSCHEMAS_CHANGED: {path}/{keyword}/{index}"
    for index, part in enumerate(reader.get("allOf", ())):
        if all(any(_schema(sides, path, part, one)) for one in [writer, *writer.get("allOf", ())]):
            yield f"COMBINED_TYPE_SUBSCHEMAS_CHANGED: {path}/allOf/{index}"


def _properties(
    sides: _Sides, path: str, reader: Mapping[str, Any], writer: Mapping[str, Any]
) -> Iterator[str]:
    read, written = reader.get("properties", {}), writer.get("properties", {})
    reads_more, writes_more = (
        schema.get("additionalProperties", True) for schema in (reader, writer)
    )
    for name in read.keys() & written.keys():
        yield from _schema(sides, f"{path}/properties/{name}", read[name], written[name])
    for name in sorted(read.keys() - written.keys()):
        place = f"{path}/properties/{name}"
        if any(_schema(sides, place, read[name], writes_more)):
            openness = "OPEN" if writes_more is True else "PARTIALLY_OPEN"
            yield f"PROPERTY_ADDED_TO_{openness}_CONTENT_MODEL: {place}"
    for name in sorted(written.keys() - read.keys()):
        place = f"{path}/properties/{name}"
        if any(_schema(sides, place, reads_more, written[name])):
            openness = "CLOSED" if reads_more is False else "PARTIALLY_OPEN"
            yield f"PROPERTY_REMOVED_FROM_{openness}_CONTENT_MODEL: {place}"
    if any(_schema(sides, path, reads_more, writes_more)):
        change = "REMOVED" if reads_more is False else "NARROWED"
        yield f"ADDITIONAL_PROPERTIES_{change}: {path}"


def _required(path: str, reader: Mapping[str, Any], writer: Mapping[str, Any]) -> Iterator[str]:
    properties = reader.get("properties", {})
    for name in sorted(set(reader.get("required", ())) - set(writer.get("required", ()))):
        schema = properties.get(name)
        if not (isinstance(schema, dict) and "default" in schema):
            yield f"REQUIRED_ATTRIBUTE_ADDED: {path}/required/{name}"
