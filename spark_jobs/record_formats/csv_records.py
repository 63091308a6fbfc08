"""Records that are lines of CSV (RFC 4180), without a header of their own.

    [record]
    format = "csv"
    header = ["id", "name", "price"]     the columns; those of the fields when not given
    delimiter = ";"

Each record is one line; a quoted text may have line breaks in it. An empty text is null. Numbers,
`true` and `false` are written as in JSON, decimals too; dates, times and binary as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.definitions.definition import Rule
from spark_jobs.definitions.field_rules import (
    NULL_VALUE,
    SHOWN_CHARACTERS,
    WRONG_TYPE,
    first_problem,
    problem_struct,
)
from spark_jobs.definitions.field_sql import quoted, raw_type, sql_text
from spark_jobs.definitions.fields import Field, key_of
from spark_jobs.record_formats.json_records import text_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_jobs.definitions.definition import Record

CORRUPT = "_corrupt_record"
"""The column in which Spark has a line that it cannot split as the header says."""

_NUMBER = r"^-?\\d+([.]\\d+)?([eE][+-]?\\d+)?$"


class CsvRecords:
    """The SQL that reads lines of CSV."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def columns(self) -> dict[str, str]:
        """Return the line as texts by column, and those as raw fields."""
        names = ",".join(f"{quoted(name)}:string" for name in (*self._record.csv_header(), CORRUPT))
        options = {
            "delimiter": self._record.delimiter,
            "escape": '"',
            "columnNameOfCorruptRecord": CORRUPT,
        }
        pairs = ", ".join(f"'{name}', {sql_text(value)}" for name, value in options.items())
        line = "regexp_replace(text, '\\\\r?\\\\n$', '')"
        return {
            "document": f"from_csv({line}, {sql_text(f'struct<{names}>')}, map({pairs}))",
            "record_fields": f"named_struct({', '.join(self._raw_pairs())})",
        }

    def _raw_pairs(self) -> list[str]:
        header = self._record.csv_header()
        return [
            f"{sql_text(key_of(name, field))}, "
            + (
                _raw_sql(field, f"document.{quoted(key_of(name, field))}")
                if key_of(name, field) in header
                else f"cast(NULL AS {raw_type(field)})"
            )
            for name, field in self.fields().items()
        ]

    def fields(self) -> Mapping[str, Field]:
        """Return the definition's fields, whose decimals are texts."""
        return {name: _written(field) for name, field in self._record.fields.items()}

    def is_typed(self) -> str:
        """Return SQL for whether each text is there and has become a value."""
        return " AND ".join(
            f"({name} IS NOT NULL"
            + (f" OR {self._text(name, field)} IS NULL)" if field.nullable else ")")
            for name, field in self.fields().items()
        )

    def shape_rules(self) -> tuple[Rule, ...]:
        """Return the rules that a value must keep to be a line with these columns."""
        columns = len(self._record.csv_header())
        return (
            Rule(
                reason="empty",
                when="value IS NULL OR length(value) = 0",
                detail="'the record has no value'",
            ),
            *text_rules(self._record),
            Rule(
                reason="not-csv",
                when=f"document IS NULL OR document.{CORRUPT} IS NOT NULL",
                detail=f"'expected one line of {columns} columns'",
            ),
        )

    def key_problem(self) -> str:
        """Return the first problem with a text that is missing or makes no sense."""
        rows = ", ".join(
            f"named_struct('name', {sql_text(key_of(name, field))}, 'type', '{field.type}', "
            f"'nullable', {str(field.nullable or field.optional).lower()}, "
            f"'text', {self._text(name, field)}, 'is_wrong', {name} IS NULL)"
            for name, field in self.fields().items()
        )
        shown = f"concat('\\'', left(f.text, {SHOWN_CHARACTERS}), '\\'')"
        wrong = f"concat(f.name, ': expected ', f.type, ', got ', {shown})"
        null = problem_struct(NULL_VALUE, "f.name")
        cases = (
            f"CASE WHEN f.text IS NULL AND NOT f.nullable THEN {null} "
            f"WHEN f.text IS NOT NULL AND f.is_wrong THEN {problem_struct(WRONG_TYPE, wrong)} END"
        )
        return first_problem(f"array({rows})", "f", cases)

    def has_ranges(self) -> None:
        """Return None: ranges are for all records."""

    def _text(self, name: str, field: Field) -> str:
        key = key_of(name, field)
        is_there = key in self._record.csv_header()
        return f"document.{quoted(key)}" if is_there else "cast(NULL AS string)"


def _written(field: Field) -> Field:
    """Return a field as a text has it."""
    is_plain = field.kind == "decimal" and field.encoding is None
    return field.model_copy(update={"encoding": "text"}) if is_plain else field


def _raw_sql(field: Field, text: str) -> str:
    kind = raw_type(field)
    if kind == "string":
        return text
    if kind == "boolean":
        return f"CASE {text} WHEN 'true' THEN true WHEN 'false' THEN false END"
    return f"CASE WHEN {text} RLIKE '{_NUMBER}' THEN try_cast({text} AS {kind}) END"
