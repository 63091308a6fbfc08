"""What a format is: from the bytes of a record to raw fields, and what can be wrong on the way.

`typed_records` adds the columns of a format to `text`, the value as a string, makes the columns of
the fields out of the struct `record_fields`, and asks for the problems. Avro is JSON here: its
`text` is what `avro` has made of the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from spark_jobs.record_formats.change_records import ChangeRecords
from spark_jobs.record_formats.csv_records import CsvRecords
from spark_jobs.record_formats.json_records import JsonRecords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_jobs.definitions.definition import Record, Rule
    from spark_jobs.definitions.fields import Field


class RecordFormat(Protocol):
    """The SQL that reads records of one definition."""

    def columns(self) -> dict[str, str]:
        """Return columns to add, in order; the last is `record_fields`, a struct by JSON keys."""

    def fields(self) -> Mapping[str, Field]:
        """Return the fields as they are written in this format."""

    def is_typed(self) -> str:
        """Return a condition under which there is no `key_problem`; columns are there already."""

    def shape_rules(self) -> Sequence[Rule]:
        """Return the rules that the bytes must keep to have fields at all."""

    def key_problem(self) -> str:
        """Return the first problem with keys and types (see `field_rules`)."""

    def has_ranges(self) -> str | None:
        """Return a condition for records that the rules about ranges are for; None for all."""


def format_of(record: Record) -> RecordFormat:
    """Return the format that a definition names."""
    if record.envelope == "debezium":
        return ChangeRecords(record)
    return CsvRecords(record) if record.format == "csv" else JsonRecords(record)
