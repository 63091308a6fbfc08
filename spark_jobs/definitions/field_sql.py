r"""Fields as Spark SQL: how JSON is read, what the columns are, and which schema a good value has.

A value takes two steps. `from_json` reads it as its *raw* type: a decimal of a JSON number exactly
as it stands there, a date as text. Then `value_sql` makes the column's type of it, with NULL for
what makes no sense, which `is_suspicious_sql` finds: no wrong text becomes NULL unseen.

Most records are good, and one comparison says so: Spark merges the types in a JSON value into one
schema, which `schema_pattern` matches.

    {"id": 1, "items": [{"price": 2.50}, {"price": 3}]}
    OBJECT<id: BIGINT, items: ARRAY<OBJECT<price: DECIMAL(21,1)>>>

What it cannot show, because types are merged, is a null or a missing key inside an array. Those
are looked for in the raw value. A record that fails either test is suspicious only, and taken
through all rules one by one (`rejection_rules`), which say what is wrong, if anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spark_jobs.definitions.fields import UNITS, Field, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

EARLIEST_YEAR, LATEST_YEAR = "0001-01-01", "9999-12-31"
"""Python, and so every reader by way of pandas, has no others."""

_DATE = r"\\d{4}-\\d{2}-\\d{2}"
_CLOCK = rf"{_DATE}[Tt ]\\d{{2}}:\\d{{2}}(:\\d{{2}}([.]\\d{{1,9}})?)?"
_OFFSET = r" ?([Zz]|[+-]\\d{2}(:?\\d{2})?)"
_PLAIN_DECIMAL = r"-?\\d+([.]\\d+)?"
_WIDE_SCALE = 9
"""Up to it a number of 29 digits, which a good schema has at most, fits into 38 with that scale."""

_NESTED = 6
"""Levels that a value of type `json` has in a good schema; deeper ones are suspicious."""


def sql_text(text: str) -> str:
    """Return a text as a literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted(name: str) -> str:
    """Return a name as SQL has it in types and paths of structs."""
    return "`" + name.replace("`", "``") + "`"


def column_type(field: Field) -> str:
    """Return the type of a field's column in SQL."""
    if field.kind in {"array", "map"}:
        return _KEYED[field.kind] + f"{column_type(_one(field))}>"
    if field.kind == "object":
        inner = (f"{name}:{column_type(f)}" for name, f in (field.fields or {}).items())
        return f"struct<{','.join(inner)}>"
    return _COLUMN_TYPES.get(field.type, field.type)


_COLUMN_TYPES = {
    "integer": "bigint",
    "number": "double",
    "text": "string",
    "json": "string",
    "local timestamp": "timestamp_ntz",
}


def raw_type(field: Field) -> str:
    """Return the type that `from_json` reads a field as."""
    if field.kind in {"array", "map"}:
        return _KEYED[field.kind] + f"{raw_type(_one(field))}>"
    if field.kind == "object":
        return raw_struct(field.fields or {})
    if field.unit is not None:
        return "double" if field.unit == "seconds" else "bigint"
    if field.kind == "decimal":
        return "string" if _is_encoded(field) else _raw_decimal(field)
    return _RAW_TYPES.get(field.kind, "string")


_KEYED = {"array": "array<", "map": "map<string,"}
_RAW_TYPES = {"integer": "bigint", "number": "double", "boolean": "boolean", "json": "variant"}


def raw_struct(fields: Mapping[str, Field]) -> str:
    """Return the type that `from_json` reads an object as; its names are the keys in JSON."""
    inner = (f"{quoted(key_of(name, f))}:{raw_type(f)}" for name, f in fields.items())
    return f"struct<{','.join(inner)}>"


def value_sql(field: Field, raw: str, level: int = 0) -> str:
    """Return SQL for the value of the column's type; it is `raw` itself where nothing changes."""
    item = f"v{level}"
    if field.kind == "array":
        inner = value_sql(_one(field), item, level + 1)
        return raw if inner == item else f"transform({raw}, {item} -> {inner})"
    if field.kind == "map":
        inner = value_sql(_one(field), item, level + 1)
        return raw if inner == item else f"transform_values({raw}, (k{level}, {item}) -> {inner})"
    if field.kind == "object":
        inner = struct_sql(field.fields or {}, raw, level)
        return raw if inner == raw else f"CASE WHEN {raw} IS NOT NULL THEN {inner} END"
    return _leaf_sql(field, raw)


def struct_sql(fields: Mapping[str, Field], raw: str, level: int = 0) -> str:
    """Return SQL for a struct of the fields' columns; it is `raw` itself where nothing changes."""
    changes, pairs = False, []
    for name, field in fields.items():
        before = f"{raw}.{quoted(key_of(name, field))}"
        after = value_sql(field, before, level)
        changes |= after != before or name != key_of(name, field)
        pairs.append(f"'{name}', {after}")
    return f"named_struct({', '.join(pairs)})" if changes else raw


def _leaf_sql(field: Field, raw: str) -> str:
    if field.unit is not None:
        return _since_1970_sql(field, raw)
    if field.kind == "decimal":
        return _decimal_sql(field, raw)
    zone = "''" if field.zone is None else f"' {field.zone}'"
    text = f"regexp_replace(upper({raw}), '^(.{{16}})(?!:)', '$1:00')"  # Java leaves out :00
    instant = f"try_cast(concat({text}, {zone}) AS timestamp)"
    made = {
        "date": _matching(raw, _DATE, f"try_cast({raw} AS date)", "DATE"),
        "timestamp": _matching(raw, _CLOCK + ("" if field.zone else _OFFSET), instant, "TIMESTAMP"),
        "local timestamp": _matching(
            raw, _CLOCK, f"try_cast({text} AS timestamp_ntz)", "TIMESTAMP_NTZ"
        ),
        "binary": f"try_to_binary({raw}, 'base64')",
        "json": f"nullif(to_json({raw}), 'null')",
    }
    return made.get(field.kind, raw)


def _since_1970_sql(field: Field, raw: str) -> str:
    if field.kind == "date":
        return _in_years(f"date_from_unix_date(try_cast({raw} AS int))", "DATE")
    factor = f"{UNITS[field.unit or ''] * 1_000_000:.0f}"
    micros = f"try_cast(round(try_multiply({raw}, {factor})) AS bigint)"
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    return f"CASE WHEN {micros} BETWEEN {first} AND {last} THEN timestamp_micros({micros}) END"


def _matching(raw: str, pattern: str, cast: str, kind: str) -> str:
    return f"CASE WHEN {raw} RLIKE '^({pattern})$' THEN {_in_years(cast, kind)} END"


def _in_years(value: str, kind: str) -> str:
    last = LATEST_YEAR if kind == "DATE" else f"{LATEST_YEAR} 23:59:59.999999"
    bounds = f"{kind} '{EARLIEST_YEAR}' AND {kind} '{last}'"
    return f"CASE WHEN {value} BETWEEN {bounds} THEN {value} END"


def _decimal_sql(field: Field, raw: str) -> str:
    if not _is_encoded(field):
        same = _raw_decimal(field) == field.type
        return raw if same else f"try_cast({raw} AS {field.type})"
    if field.encoding == "text":
        return f"CASE WHEN {is_exact_sql(field, raw)} THEN try_cast({raw} AS {field.type}) END"
    # Two's complement, the highest byte first; 16 bytes hold more than 38 digits.
    number = (
        "aggregate(sequence(1, length(bytes)), cast(0 AS decimal(38,0)), (sum, at) -> "
        "cast(sum * 256 + cast(conv(hex(substring(bytes, at, 1)), 16, 10) AS int) "
        "- CASE WHEN at = 1 AND hex(substring(bytes, 1, 1)) >= '80' THEN 256 ELSE 0 END "
        "AS decimal(38,0)))"
    )
    scaled = f"try_cast(concat({number}, 'E-{field.scale}') AS {field.type})"
    whole = f"CASE WHEN length(bytes) BETWEEN 1 AND 16 THEN {scaled} END"
    return f"element_at(transform(array(try_to_binary({raw}, 'base64')), bytes -> {whole}), 1)"


def is_exact_sql(field: Field, text: str) -> str:
    """Return SQL for whether a number's text has no more digits than a decimal field."""
    after = f"length(regexp_extract({text}, '[.]([0-9]*?)0*([eE]|$)', 1))"
    power = f"coalesce(try_cast(regexp_extract({text}, '[eE]([+-]?[0-9]+)$', 1) AS int), 0)"
    return (
        f"({text} RLIKE '^{_PLAIN_DECIMAL}([eE][+-]?\\\\d+)?$' "
        f"AND {after} - {power} <= {field.scale} AND try_cast({text} AS {field.type}) IS NOT NULL)"
    )


def schema_pattern(field: Field, *, is_merged: bool = False) -> str:
    """Return a pattern for the schema of a good value; `is_merged` inside arrays."""
    kind = leaf_pattern(field)
    if field.kind == "array":
        kind = f"ARRAY<({schema_pattern(_one(field), is_merged=True)}|VOID)>"
    elif field.kind == "map":
        value = schema_pattern(_one(field), is_merged=is_merged)
        kind = f"OBJECT<({_KEY}: {value}(, |(?=>)))*>"
    elif field.kind == "object":
        kind = object_pattern(field.fields or {}, is_merged=is_merged)
    elif field.kind == "json":
        kind = _any_schema(_NESTED)
    elif field.kind == "decimal" and not _is_encoded(field):
        scales = "|".join(map(str, range(field.scale + 1)))
        kind = rf"(BIGINT|DECIMAL[(][12]?\\d,({scales})[)])"
    return f"({kind}|VOID)" if field.may_be_null or is_merged else kind


_KEY = "([A-Za-z_][A-Za-z0-9_]*|`([^`]|``)*`)"


def object_pattern(fields: Mapping[str, Field], *, is_merged: bool = False) -> str:
    """Return a pattern for the schema of an object with these fields; Spark lists keys by name."""
    entries = []
    for key, field in sorted((key_of(name, field), field) for name, field in fields.items()):
        name = key if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", key) else quoted(key)
        literal = sql_text(re.escape(name))[1:-1]
        entry = f"{literal}: {schema_pattern(field, is_merged=is_merged)}(, |(?=>))"
        entries.append(f"({entry})?" if field.optional or is_merged else entry)
    return f"OBJECT<{''.join(entries)}>"


def leaf_pattern(field: Field) -> str:
    """Return a pattern for the schema of a value that is of the right type in JSON, null aside."""
    if field.unit is not None:
        return _NUMBER if field.unit == "seconds" else "BIGINT"
    if field.kind == "decimal" and not _is_encoded(field):
        return _NUMBER
    return _SCHEMAS.get(field.kind, "STRING")


_NUMBER = "(BIGINT|DOUBLE|FLOAT|DECIMAL[(][0-9]+,[0-9]+[)])"


def _any_schema(levels: int) -> str:
    inner = "[^<>`]*"
    for _ in range(levels):
        inner = f"[^<>`]*(<{inner}>[^<>`]*)*"
    return rf"[A-Z]+([(]\\d+,\\d+[)])?(<{inner}>)?"


_SCHEMAS = {
    "integer": "BIGINT",
    "number": _NUMBER,
    "boolean": "BOOLEAN",
    "json": ".*",
    "array": "ARRAY<.*>",
    "map": "OBJECT<.*>",
    "object": "OBJECT<.*>",
}


def is_suspicious_sql(fields: Mapping[str, Field], raw: str) -> str | None:
    """Return SQL for whether a raw object of a good schema may have a wrong value after all.

    The columns of the fields are there already.
    """
    found = []
    for name, field in fields.items():
        before = f"{raw}.{quoted(key_of(name, field))}"
        if field.inner() or value_sql(field, before) == before:
            found.append(_suspicion(field, before, is_merged=False))
        elif field.kind != "json":
            found.append(f"({before} IS NOT NULL AND {name} IS NULL)")
    return _any(found)


def _suspicion(field: Field, raw: str, *, is_merged: bool, level: int = 0) -> str | None:
    found: list[str | None] = []
    if _may_overflow(field) or (is_merged and not (field.may_be_null and field.optional)):
        found.append(f"{raw} IS NULL")
    item = f"s{level}"
    if field.kind in {"array", "map"}:
        is_array = field.kind == "array"
        inner = _suspicion(_one(field), item, is_merged=is_merged or is_array, level=level + 1)
        values = raw if is_array else f"map_values({raw})"
        found.append(inner and f"exists({values}, {item} -> {inner})")
    elif field.kind == "object":
        inside = [
            _suspicion(f, f"{raw}.{quoted(key_of(name, f))}", is_merged=is_merged, level=level)
            for name, f in (field.fields or {}).items()
        ]
        inner = _any(inside)
        found.append(inner and f"({raw} IS NOT NULL AND {inner})")
    elif field.kind != "json" and (value := value_sql(field, raw)) != raw:
        found.append(f"({raw} IS NOT NULL AND {value} IS NULL)")
    return _any(found)


def _may_overflow(field: Field) -> bool:
    """Say whether `from_json` may give NULL for a value of a good schema: too many digits."""
    if field.kind == "decimal":
        return _raw_decimal(field) == field.type
    return any(_may_overflow(inner) for inner in field.inner())


def _any(conditions: object) -> str | None:
    found = [one for one in conditions if one]  # type: ignore[attr-defined]
    return f"({' OR '.join(found)})" if found else None


def _raw_decimal(field: Field) -> str:
    """Return a type that holds each number of a good schema; the column's own if there is none."""
    return f"decimal(38,{field.scale})" if field.scale <= _WIDE_SCALE else field.type


def _is_encoded(field: Field) -> bool:
    return field.encoding in {"text", "bytes"}


def _one(field: Field) -> Field:
    inner = field.items or field.values
    assert inner is not None, "pydantic has checked that arrays and maps have one"
    return inner
