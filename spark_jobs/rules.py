"""What is wrong with a record, and where a good one goes: rules as Spark SQL, in order.

The first rule that holds names the reason why a record is rejected; a record for which none
holds is valid. Rules are data, so that they can be listed, tested and extended without touching
the job. They may use the columns that `parsed_flights` makes:

    value, text                 the record's value as bytes, and as a string
    document                    `[text]` as a variant; NULL when that is not JSON
    types                       Spark's description of the document's types
    <field>                     its value; NULL also when it has the wrong type
    event_time                  scheduled departure as an instant, NULL when it makes none
    airline_name, origin_name, dest_name     NULL when the code is not known

The text is parsed inside brackets because Spark's parser stops after the first JSON value: as
the element of a list, whatever follows the object is either a syntax error or a second element.

Rules about single keys are many and almost never hold. One comparison of `types` with what it
is for a good record passes them over; it halves the processor time of a job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.flights import FIELDS, ZONE, Field

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Rule:
    """A reason to reject a record."""

    reason: str
    """Short and stable: what consumers of the rejects count and select by."""

    when: str
    """SQL condition; NULL counts as false."""

    detail: str
    """SQL expression for a person: which key, which value."""


MISSING_KEY = "missing-key"
NULL_VALUE = "null-value"
WRONG_TYPE = "wrong-type"
IMPOSSIBLE_TIME = "impossible-time"
IMPOSSIBLE_NUMBER = "impossible-number"


_NOT_ONE_JSON_VALUE = (
    "document IS NULL OR variant_get(document, '$[0]', 'variant') IS NULL "
    "OR variant_get(document, '$[1]', 'variant') IS NOT NULL "
    "OR (contains(text, ']') AND try_parse_json(concat('{\"r\":', text, '}')) IS NULL)"
)
"""A text with a bracket too many ends the list early; inside braces it is a syntax error."""


def _shape_rules() -> Iterator[Rule]:
    yield Rule("empty", "value IS NULL OR length(value) = 0", "'the record has no value'")
    yield Rule("not-utf-8", "NOT is_valid_utf8(text)", "'the bytes are not UTF-8'")
    yield Rule(
        "not-json",
        _NOT_ONE_JSON_VALUE,
        "concat('not one JSON value, in ', length(value), ' bytes')",
    )
    yield Rule(
        "not-an-object",
        "NOT startswith(ltrim(' \\t\\r\\n', text), '{')",
        "concat('expected an object, got ', schema_of_variant(document))",
    )


def _field_rules(field: Field) -> Iterator[Rule]:
    name = field.name
    found = f"schema_of_variant(variant_get(document, '$[0].{name}', 'variant'))"
    yield Rule(MISSING_KEY, f"{found} IS NULL", f"'{name}'")
    if not field.is_nullable:
        yield Rule(NULL_VALUE, f"{found} = 'VOID'", f"'{name}'")
    yield Rule(
        WRONG_TYPE,
        f"{found} NOT IN ('{field.json_type}', 'VOID')",
        f"concat('{name}: expected {field.json_type}, got ', {found})",
    )


def _good_types() -> str:
    """Return a pattern for `types` of a record that has all keys, no others, and their types."""
    by_name = sorted(FIELDS, key=lambda field: field.name)
    keys = (
        f"{field.name}: " + (f"({field.json_type}|VOID)" if field.is_nullable else field.json_type)
        for field in by_name
    )
    return f"^ARRAY<OBJECT<{', '.join(keys)}>>$"


def _range_rules(field: Field) -> Iterator[Rule]:
    if not field.is_integer:
        return
    name = field.name
    is_time = field.is_hhmm or name in {"year", "month", "day", "hour", "minute"}
    outside = f"{name} NOT BETWEEN {field.low} AND {field.high}"
    if field.is_hhmm:
        outside += f" OR {name} % 100 > 59"
    yield Rule(
        IMPOSSIBLE_TIME if is_time else IMPOSSIBLE_NUMBER, outside, f"concat('{name} ', {name})"
    )


LOCAL_HOUR = f"from_utc_timestamp(hour_time, '{ZONE}')"

_MEANING_RULES = (
    Rule("unknown-airline", "airline_name IS NULL", "carrier"),
    Rule("unknown-airport", "origin_name IS NULL", "concat('origin ', origin)"),
    Rule("unknown-airport", "dest_name IS NULL", "concat('dest ', dest)"),
    Rule(IMPOSSIBLE_TIME, "event_time IS NULL", "concat('time_hour ', time_hour)"),
    Rule(
        IMPOSSIBLE_TIME,
        "sched_dep_time != hour * 100 + minute",
        "concat('sched_dep_time ', sched_dep_time, ' at ', hour, ':', minute)",
    ),
    Rule(
        IMPOSSIBLE_TIME,
        f"date_format({LOCAL_HOUR}, 'yyyy-M-d H') != concat_ws(' ', "
        "concat_ws('-', year, month, day), hour)",
        "concat('time_hour ', time_hour, ' on ', concat_ws('-', year, month, day))",
    ),
    Rule(
        "contradiction",
        "dep_time IS NULL AND coalesce(dep_delay, arr_time, arr_delay, air_time) IS NOT NULL",
        "'never left, yet has a delay, an arrival or an air time'",
    ),
    Rule(
        "contradiction",
        "dep_time IS NOT NULL AND dep_delay IS NULL",
        "'left, yet has no departure delay'",
    ),
    Rule(
        "contradiction",
        "arr_time IS NULL AND coalesce(arr_delay, air_time) IS NOT NULL",
        "'has no arrival, yet an arrival delay or an air time'",
    ),
    Rule("contradiction", "origin = dest", "concat('from ', origin, ' to itself')"),
)

SHAPE_RULES = tuple(_shape_rules())
KEY_RULES = tuple(rule for field in FIELDS for rule in _field_rules(field))
VALUE_RULES = (*(rule for field in FIELDS for rule in _range_rules(field)), *_MEANING_RULES)
RULES: tuple[Rule, ...] = (*SHAPE_RULES, *KEY_RULES, *VALUE_RULES)
"""In order: shape of the bytes, keys and types, ranges, then what only the whole can tell."""

REASONS = tuple(dict.fromkeys(rule.reason for rule in RULES))

CANCELLED, DELAYED, ON_TIME, REJECTED = "cancelled", "delayed", "on-time", "rejected"
ROUTES = (ON_TIME, DELAYED, CANCELLED, REJECTED)
"""The last part of the name of the topic that a record goes to."""


def rejection_sql() -> str:
    """Return SQL that gives a struct (reason, detail), or NULL for a valid record."""
    return (
        f"coalesce({_first_of(SHAPE_RULES)}, "
        f"CASE WHEN types RLIKE '{_good_types()}' THEN NULL ELSE {_first_of(KEY_RULES)} END, "
        f"{_first_of(VALUE_RULES)})"
    )


def _first_of(rules: tuple[Rule, ...]) -> str:
    cases = " ".join(
        f"WHEN {rule.when} THEN named_struct('reason', '{rule.reason}', 'detail', "
        f"cast({rule.detail} AS string))"
        for rule in rules
    )
    return f"CASE {cases} END"


def route_sql(delayed_from_minutes: int) -> str:
    """Return SQL that names the route of a valid flight.

    Cancelled: it never left. Delayed: it arrived `delayed_from_minutes` or more after schedule
    (15 is the US Department of Transportation's definition), or it left and no arrival delay
    is known, because it was diverted or its arrival was not reported. On time: all others.
    """
    return (
        f"CASE WHEN dep_time IS NULL THEN '{CANCELLED}' "
        f"WHEN arr_delay IS NULL OR arr_delay >= {delayed_from_minutes} THEN '{DELAYED}' "
        f"ELSE '{ON_TIME}' END"
    )
