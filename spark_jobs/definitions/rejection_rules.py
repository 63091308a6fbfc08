"""What is wrong with a record, as one SQL expression made from its definition.

The first rule that holds names the reason why a record is rejected; a record for which none
holds is valid. Rules come in this order: size and shape of the bytes, keys and types, ranges, the
definition's own, and last the event time. They may use the columns that `typed_records` makes.

The text is parsed inside brackets because Spark's parser stops after the first JSON value: as
the element of a list, whatever follows the object is either a syntax error or a second element.

Rules about single keys are many and almost never hold. One comparison of the record's types with
those of a good one (`is_typed`) passes them over; it halves the processor time of a job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.definitions.definition import JSON_TYPES, Field, Record, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MISSING_KEY, UNKNOWN_KEY = "missing-key", "unknown-key"
NULL_VALUE, WRONG_TYPE = "null-value", "wrong-type"
IMPOSSIBLE_TIME, CLOCK_SKEW = "impossible-time", "clock-skew"
EARLIEST, LATEST = "0001-02-01", "9999-11-30"
"""Event times before and behind are rejected: a window around one may begin or end at an instant
that cannot be written, or be counted, which would end the job."""

_NOT_ONE_JSON_VALUE = (
    "document IS NULL OR (NOT is_typed AND variant_get(document, '$[0]', 'variant') IS NULL) "
    "OR variant_get(document, '$[1]', 'variant') IS NOT NULL "
    "OR (contains(text, ']') AND try_parse_json(concat('{\"r\":', text, '}')) IS NULL)"
)
"""A text with a bracket too many ends the list early; inside braces it is a syntax error. What has
good types has an element, of which Spark would make a copy to tell that it is there."""


def rejection_sql(record: Record) -> str:
    """Return SQL that gives a struct (reason, detail), or NULL for a valid record."""
    return (
        f"coalesce({_first_of(shape_rules(record))}, "
        "CASE WHEN is_typed THEN NULL "
        f"ELSE {_first_of(key_rules(record))} END, "
        f"{_first_of(value_rules(record))})"
    )


def reasons(record: Record) -> tuple[str, ...]:
    """Return every reason there can be, in the order of the rules."""
    rules = (*shape_rules(record), *key_rules(record), *value_rules(record))
    return tuple(dict.fromkeys(rule.reason for rule in rules))


def shape_rules(record: Record) -> tuple[Rule, ...]:
    """Return the rules that a value must pass to be a JSON object at all."""
    return (
        _rule("empty", "value IS NULL OR length(value) = 0", "'the record has no value'"),
        _rule(
            "too-large",
            f"length(value) > {record.max_bytes}",
            f"concat(length(value), ' bytes, at most {record.max_bytes}')",
        ),
        _rule("not-utf-8", "NOT is_valid_utf8(text)", "'the bytes are not UTF-8'"),
        _rule(
            "not-json",
            _NOT_ONE_JSON_VALUE,
            "concat('not one JSON value, in ', length(value), ' bytes')",
        ),
        _rule(
            "not-an-object",
            "NOT startswith(ltrim(' \\t\\r\\n', text), '{')",
            "concat('expected an object, got ', schema_of_variant(document))",
        ),
    )


def key_rules(record: Record) -> tuple[Rule, ...]:
    """Return the rules about keys and the types of their values."""
    rules = [rule for name, field in record.fields.items() for rule in _field_rules(name, field)]
    if record.unknown_keys == "reject":
        rules.append(_unknown_keys(record.fields))
    return tuple(rules)


def value_rules(record: Record) -> tuple[Rule, ...]:
    """Return the rules about what the values are: ranges, the definition's own, event time."""
    ranges = [rule for name, field in record.fields.items() for rule in _range_rules(name, field)]
    return (*ranges, *record.rules, *_event_time_rules(record))


def _rule(reason: str, when: str, detail: str) -> Rule:
    return Rule(reason=reason, when=when, detail=detail)


def _field_rules(name: str, field: Field) -> Iterator[Rule]:
    found = f"schema_of_variant(variant_get(document, '$[0].{name}', 'variant'))"
    if not field.optional:
        yield _rule(MISSING_KEY, f"{found} IS NULL", f"'{name}'")
    if not field.nullable:
        yield _rule(NULL_VALUE, f"{found} = 'VOID'", f"'{name}'")
    yield _rule(
        WRONG_TYPE,
        f"{found} NOT RLIKE '^({_pattern(field)}|VOID)$'",
        f"concat('{name}: expected {field.type}, got ', {found})",
    )


def _unknown_keys(fields: dict[str, Field]) -> Rule:
    known = ", ".join(f"'{name}'" for name in fields)
    unknown = f"array_except(json_object_keys(text), array({known}))"
    return _rule(UNKNOWN_KEY, f"size({unknown}) > 0", f"array_join({unknown}, ', ')")


def _pattern(field: Field) -> str:
    return JSON_TYPES[field.type][0]


def is_typed_sql(record: Record) -> str:
    """Return SQL for whether a `document` has all keys, no others, and their types.

    Spark lists the keys by name.
    """
    keys: list[str] = []
    for name, field in sorted(record.fields.items()):
        key = f"{name}: " + (f"({_pattern(field)}|VOID)" if field.nullable else _pattern(field))
        keys.append(key)
    good = f"^ARRAY<OBJECT<{', '.join(keys)}>>$"
    return f"coalesce(schema_of_variant(document) RLIKE '{good}', false)"


def _range_rules(name: str, field: Field) -> Iterator[Rule]:
    bounds = [
        f"{name} {sign} {bound}"
        for sign, bound in (("<", field.low), (">", field.high))
        if bound is not None
    ]
    if field.type == "number":  # what is written 1E400
        bounds.append(f"abs({name}) = double('infinity')")
    if bounds:
        yield _rule(field.out_of_range, " OR ".join(bounds), f"concat('{name} ', {name})")


def _event_time_rules(record: Record) -> Iterator[Rule]:
    yield _rule(IMPOSSIBLE_TIME, "event_time IS NULL", "'the event time is none'")
    yield _rule(
        IMPOSSIBLE_TIME,
        f"event_time NOT BETWEEN TIMESTAMP '{EARLIEST}' AND TIMESTAMP '{LATEST}'",
        "concat('event time ', event_time)",
    )
    if record.latest is not None:
        yield _rule(
            CLOCK_SKEW,
            f"event_time > current_timestamp() + INTERVAL {record.latest}",
            "concat('event time ', event_time, ' is ahead of the clock')",
        )


def _first_of(rules: Sequence[Rule]) -> str:
    cases = " ".join(
        f"WHEN {rule.when} THEN named_struct('reason', '{rule.reason}', 'detail', "
        f"cast({rule.detail} AS string))"
        for rule in rules
    )
    return f"CASE {cases} END"
