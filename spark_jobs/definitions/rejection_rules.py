"""What is wrong with a record, as one SQL expression made from its definition.

The first rule that holds names the reason why a record is rejected; a record for which none
holds is valid. Rules come in this order: size and shape of the bytes, keys and types, ranges, the
definition's own, and last the event time. They may use the columns that `typed_records` makes.

The text is parsed inside brackets because Spark's parser stops after the first JSON value: as
the element of a list, whatever follows the object is either a syntax error or a second element.

Rules about single keys are many and almost never hold. One comparison of the record's types with
those of a good one (`is_typed`) passes them over; it halves the processor time of a job.
`field_rules` makes them, and those about ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.definitions.definition import Rule
from spark_jobs.definitions.field_rules import (
    json_kind_sql,
    key_problem,
    range_problems,
    unknown_key_problem,
)
from spark_jobs.definitions.field_sql import is_suspicious_sql, object_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_jobs.definitions.definition import Record

IMPOSSIBLE_TIME, CLOCK_SKEW = "impossible-time", "clock-skew"
EARLIEST, LATEST = "0001-02-01", "9999-11-30"
"""Event times before and behind are rejected: a window around one may begin or end at an instant
that cannot be written, or be counted, which would end the job."""

BASE, ROOT = "document", "$[0]"
"""The variant that holds a record's object, and the path to it."""

_KIND = f"schema_of_variant(variant_get({BASE}, '{ROOT}', 'variant'))"
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
        f"CASE WHEN NOT is_typed THEN {_key_problem(record)} END, "
        f"{''.join(f'{problem}, ' for problem in range_problems(record.fields))}"
        f"{_first_of((*record.rules, *_event_time_rules(record)))})"
    )


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
            f"concat('expected an object, got ', {json_kind_sql(_KIND)})",
        ),
    )


def is_typed_sql(record: Record) -> str:
    """Return SQL for whether a record has all keys, no others, and their types."""
    good = f"^ARRAY<{object_pattern(record.fields)}>$"
    is_shaped = f"coalesce(schema_of_variant({BASE}) RLIKE '{good}', false)"
    suspicious = is_suspicious_sql(record.fields, "record_fields")
    return is_shaped if suspicious is None else f"{is_shaped} AND NOT coalesce({suspicious}, false)"


def _key_problem(record: Record) -> str:
    problem = key_problem(record.fields, BASE, ROOT, record.unknown_keys)
    if record.unknown_keys == "ignore":
        return problem
    return f"coalesce({problem}, {unknown_key_problem(record.fields, 'json_object_keys(text)')})"


def _rule(reason: str, when: str, detail: str) -> Rule:
    return Rule(reason=reason, when=when, detail=detail)


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
