"""What is wrong with the fields of a record, at any depth: keys, types, ranges.

A *problem* is SQL for a struct (reason, detail), or NULL when there is none. The detail names the
path of the first value that is wrong: `items[2].price`.

Problems with keys and types are looked for in variants, in which a null and a missing key differ.
All fields of an object, and of objects right inside it, are rows of one table of checks, with which
one expression looks at each: Spark plans each batch anew, and an expression for each field and
rule would take longer than the batch. Arrays and maps have tables of their own, for each item.

Problems with ranges are looked for in the columns.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.definitions.field_sql import (
    is_exact_sql,
    leaf_pattern,
    quoted,
    raw_type,
    sql_text,
    value_sql,
)
from spark_jobs.definitions.fields import NUMBERS, TIMES, Field, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MISSING_KEY, UNKNOWN_KEY = "missing-key", "unknown-key"
NULL_VALUE, WRONG_TYPE = "null-value", "wrong-type"
SHOWN_CHARACTERS = 100
"""Of a wrong value, in the detail."""

_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
Placed = tuple[str, str, str | None, Field]
"""A field with its path in JSON, that path for a person, and the path of the object around it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A variant, and where it is."""

    variant: str
    """SQL of it"""

    path: str
    """SQL of the path to it, for a person"""

    level: int = 0
    """how many arrays and maps it lies in"""


def key_problem(fields: Mapping[str, Field], base: str, root: str, unknown_keys: str) -> str:
    """Return the first problem with the keys of an object in a variant, or with their types."""
    return _table_problem([*_placed(fields, root, "", None)], Place(base, "''"), unknown_keys)


def unknown_key_problem(fields: Mapping[str, Field], keys: str) -> str:
    """Return the problem that the SQL array `keys` has others than those of the fields."""
    unknown = f"array_except({keys}, {_known(fields)})"
    return f"CASE WHEN size({unknown}) > 0 THEN {problem_struct(UNKNOWN_KEY, _joined(unknown))} END"


def range_problems(fields: Mapping[str, Field]) -> list[str]:
    """Return the problems with columns: ranges, patterns, numbers beyond a double."""
    found = [_range_problem(field, name, sql_text(name), 0) for name, field in fields.items()]
    return [problem for problem in found if problem]


def json_kind_sql(kind: str) -> str:
    """Return SQL for the type of a variant in JSON's words; `kind` is SQL for its schema."""
    return (
        f"CASE WHEN {kind} = 'VOID' THEN 'null' WHEN {kind} = 'STRING' THEN 'text' "
        f"WHEN {kind} = 'BOOLEAN' THEN 'boolean' WHEN startswith({kind}, 'ARRAY') THEN 'array' "
        f"WHEN startswith({kind}, 'OBJECT') THEN 'object' ELSE 'number' END"
    )


def problem_struct(reason: str, detail: str) -> str:
    """Return a problem; `detail` is SQL."""
    return f"named_struct('reason', '{reason}', 'detail', {detail})"


def _joined(unknown: str) -> str:
    return f"array_join({unknown}, ', ')"


def _known(fields: Mapping[str, Field]) -> str:
    return f"array({', '.join(sql_text(key_of(*pair)) for pair in fields.items())})"


def _placed(
    fields: Mapping[str, Field], path: str, shown: str, around: str | None
) -> Iterator[Placed]:
    """Yield the fields of an object and of objects inside it, but not those in arrays and maps."""
    for name, field in fields.items():
        key = key_of(name, field)
        step = f".{key}" if _IDENTIFIER.fullmatch(key) else f"['{key}']"
        step = f'["{key}"]' if "'" in key else step
        yield path + step, f"{shown}.{key}" if shown else key, around, field
        if field.fields:
            inside = f"{shown}.{key}" if shown else key
            yield from _placed(field.fields, path + step, inside, path + step)


def _table_problem(placed: list[Placed], place: Place, unknown_keys: str) -> str:
    """Return the first problem with fields of one variant."""
    checks = f"array({', '.join(_check(*one, unknown_keys) for one in placed)})"
    variant = f"variant_get({place.variant}, c.path, 'variant')"
    around = f"schema_of_variant(variant_get({place.variant}, c.around, 'variant'))"
    found = (
        f"transform({checks}, c -> named_struct('c', c, 'v', {variant}, "
        f"'is_there', c.around IS NULL OR coalesce(startswith({around}, 'OBJECT'), false), "
        f"'kind', schema_of_variant({variant}), 'text', cast({variant} AS string)))"
    )
    cases = _cases([field for *_, field in placed], f"concat({place.path}, f.c.shown)")
    first = first_problem(found, "f", f"CASE {' '.join(cases)} END")
    inner = [*_inner_problems(placed, place, unknown_keys)]
    return f"coalesce({', '.join([first, *inner])})" if inner else first


def _cases(fields: list[Field], name: str) -> Iterator[str]:
    """Yield what can be wrong with `f`, a row of the table of checks with what was found for it."""
    expected = f"{name}, ': expected ', f.c.type, ', got '"
    kind, value = json_kind_sql("f.kind"), f"left(f.text, {SHOWN_CHARACTERS})"
    value = f"CASE WHEN f.kind = 'STRING' THEN concat('\\'', {value}, '\\'') ELSE {value} END"
    missing, null = problem_struct(MISSING_KEY, name), problem_struct(NULL_VALUE, name)
    yield "WHEN NOT f.is_there THEN NULL"
    yield f"WHEN f.kind IS NULL THEN CASE WHEN NOT f.c.optional THEN {missing} END"
    yield f"WHEN f.kind = 'VOID' THEN CASE WHEN NOT f.c.nullable THEN {null} END"
    wrong = problem_struct(WRONG_TYPE, f"concat({expected}, {kind})")
    yield f"WHEN f.kind NOT RLIKE f.c.pattern THEN {wrong}"
    tests = {_condition(field): _is_wrong(field) for field in fields if _is_wrong(field)}
    if tests:
        sql = " ".join(f"WHEN {sql_text(key)} THEN {test}" for key, test in tests.items())
        wrong = problem_struct(WRONG_TYPE, f"concat({expected}, {value})")
        yield f"WHEN CASE f.c.condition {sql} END THEN {wrong}"
    if any(field.fields for field in fields):
        keys = "map_keys(try_variant_get(f.v, '$', 'map<string,variant>'))"
        unknown = f"array_except({keys}, f.c.keys)"
        detail = f"concat({name}, '.', {_joined(unknown)})"
        yield f"WHEN size({unknown}) > 0 THEN {problem_struct(UNKNOWN_KEY, detail)}"


def first_problem(array: str, item: str, problem: str) -> str:
    """Return the first problem with an item of an array."""
    return f"get(filter(transform({array}, {item} -> {problem}), p -> p IS NOT NULL), 0)"


def _check(path: str, shown: str, around: str | None, field: Field, unknown_keys: str) -> str:
    """Return a row of the table of checks."""
    rejects_keys = field.fields and (field.unknown_keys or unknown_keys) == "reject"
    keys = _known(field.fields or {}) if rejects_keys else "cast(NULL AS array<string>)"
    columns = {
        "path": sql_text(path),
        "shown": sql_text(shown),
        "around": "cast(NULL AS string)" if around is None else sql_text(around),
        "type": sql_text(field.type),
        "pattern": f"'^({leaf_pattern(field)})$'",
        "optional": str(field.optional).lower(),
        "nullable": str(field.may_be_null).lower(),
        "condition": sql_text(_condition(field)),
        "keys": keys,
    }
    pairs = (f"'{name}', {sql}" for name, sql in columns.items())
    return f"named_struct({', '.join(pairs)})"


def _condition(field: Field) -> str:
    """Return the name of the test that a value of a field takes, if there is one."""
    if not _is_wrong(field):
        return ""
    return " ".join(str(part) for part in (field.type, field.unit, field.zone, field.encoding))


def _is_wrong(field: Field) -> str:
    """Return SQL for whether a value of the right type in JSON makes no sense; or nothing."""
    if field.kind == "decimal" and field.encoding in {None, "number"}:
        return f"NOT {is_exact_sql(field, 'f.text')}"
    if field.kind in {"array", "map", "object", "json"}:
        return ""
    raw = "f.text" if raw_type(field) == "string" else f"try_cast(f.text AS {raw_type(field)})"
    value = value_sql(field, raw)
    return "" if value == raw else f"{value} IS NULL"


def _inner_problems(placed: Iterable[Placed], place: Place, unknown_keys: str) -> Iterator[str]:
    """Yield the problems with items of arrays and with values of maps."""
    item, level = f"x{place.level}", place.level + 1
    for path, shown, _, field in placed:
        name, kinds = f"{place.path}, {sql_text(shown)}", field.unknown_keys or unknown_keys
        inside = f"try_variant_get({place.variant}, {sql_text(path)}, "
        if field.items is not None:
            each = Place(item, f"concat({name}, '[', i{place.level}, ']')", level)
            problem = _table_problem([*_item(field.items)], each, kinds)
            yield first_problem(f"{inside}'array<variant>')", f"({item}, i{place.level})", problem)
        if field.values is not None:
            each = Place(f"{item}.value", f"concat({name}, '.', {item}.key)", level)
            problem = _table_problem([*_item(field.values)], each, kinds)
            yield first_problem(f"map_entries({inside}'map<string,variant>'))", item, problem)


def _item(field: Field) -> Iterator[Placed]:
    yield "$", "", None, field
    if field.fields:
        for path, shown, around, inner in _placed(field.fields, "$", "", "$"):
            yield path, f".{shown}", around, inner


def _range_problem(field: Field, value: str, name: str, level: int) -> str | None:
    """Return the first problem with a column, or a value in it; `name` is SQL of its path."""
    problems: list[str | None] = []
    conditions = _conditions(field, value)
    if conditions:
        reason = field.out_of_range or f"impossible-{_noun(field)}"
        detail = f"concat({name}, ' ', left(cast({value} AS string), {SHOWN_CHARACTERS}))"
        broken = " OR ".join(conditions)
        problems.append(f"CASE WHEN {broken} THEN {problem_struct(reason, detail)} END")
    item = f"x{level}"
    if field.items is not None:
        inside = f"concat({name}, '[', i{level}, ']')"
        inner = _range_problem(field.items, item, inside, level + 1)
        problems.append(inner and first_problem(value, f"({item}, i{level})", inner))
    if field.values is not None:
        inside = f"concat({name}, '.', {item}.key)"
        inner = _range_problem(field.values, f"{item}.value", inside, level + 1)
        problems.append(inner and first_problem(f"map_entries({value})", item, inner))
    for key, one in (field.fields or {}).items():
        inside = f"concat({name}, {sql_text('.' + key_of(key, one))})"
        problems.append(_range_problem(one, f"{value}.{quoted(key)}", inside, level))
    found = [problem for problem in problems if problem]
    return f"coalesce({', '.join(found)})" if found else None


def _noun(field: Field) -> str:
    if field.kind in TIMES:
        return "time"
    return "number" if field.kind in NUMBERS else "text"


def _conditions(field: Field, value: str) -> list[str]:
    """Return SQL for each way in which a value breaks a rule of its field."""
    conditions = [
        f"{value} {sign} {_literal(bound)}"
        for sign, bound in (("<", field.low), (">", field.high))
        if bound is not None
    ]
    if field.kind == "number":  # what is written 1E400
        conditions.append(f"abs({value}) = double('infinity')")
    if field.pattern is not None:
        whole = sql_text("\\A(?:" + field.pattern + ")\\z")
        conditions.append(f"{value} NOT RLIKE {whole}")
    if field.one_of is not None:
        conditions.append(f"{value} NOT IN ({', '.join(map(_literal, field.one_of))})")
    return conditions


def _literal(value: float | str | dt.date) -> str:
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP{'' if value.tzinfo else '_NTZ'} '{value.isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    return sql_text(value) if isinstance(value, str) else str(value)
