"""What is wrong with a record, as one SQL expression made from its definition.

The first rule that holds names the reason why a record is rejected; a record for which none
holds is valid. Rules come in this order: size and shape of the bytes, keys and types, ranges, the
definition's own, and last the event time. They may use the columns that `typed_records` makes.

Rules about single keys are many and almost never hold. One comparison of the record's types with
those of a good one (`is_typed`) passes them over; it halves the processor time of a job.
`field_rules` makes them, and those about ranges; the format of the records (`record_formats`) says
which are asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.definitions.definition import Rule
from spark_jobs.definitions.field_rules import range_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_jobs.definitions.definition import Record
    from spark_jobs.record_formats.formats import RecordFormat

IMPOSSIBLE_TIME, CLOCK_SKEW = "impossible-time", "clock-skew"
EARLIEST, LATEST = "0001-02-01", "9999-11-30"
"""Event times before and behind are rejected: a window around one may begin or end at an instant
that cannot be written, or be counted, which would end the job."""


def rejection_sql(record: Record, records: RecordFormat) -> str:
    """Return SQL that gives a struct (reason, detail), or NULL for a valid record."""
    ranges = ", ".join(range_problems(record.fields))
    has_ranges = records.has_ranges()
    if ranges and has_ranges is not None:
        ranges = f"CASE WHEN {has_ranges} THEN coalesce({ranges}) END"
    return (
        f"coalesce({_first_of(records.shape_rules())}, "
        f"CASE WHEN NOT is_typed THEN {records.key_problem()} END, {ranges}{', ' if ranges else ''}"
        f"{_first_of((*record.rules, *_event_time_rules(record)))})"
    )


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
