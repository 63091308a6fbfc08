"""Records that are JSON objects.

The text is parsed inside brackets because Spark's parser stops after the first JSON value: as
the element of a list, whatever follows the object is either a syntax error or a second element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.definitions.definition import Rule
from spark_jobs.definitions.field_rules import json_kind_sql, key_problem, unknown_key_problem
from spark_jobs.definitions.field_sql import (
    is_suspicious_sql,
    object_pattern,
    raw_struct,
    sql_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_jobs.definitions.definition import Record
    from spark_jobs.definitions.fields import Field

DOCUMENT_SQL = "try_parse_json(concat('[', text, ']'))"
_KIND = "schema_of_variant(variant_get(document, '$[0]', 'variant'))"


class JsonRecords:
    """The SQL that reads JSON objects."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def columns(self) -> dict[str, str]:
        """Return the parsed text as a variant, and as a struct."""
        struct = sql_text(raw_struct(self._record.fields))
        return {"document": DOCUMENT_SQL, "record_fields": f"from_json(text, {struct})"}

    def fields(self) -> Mapping[str, Field]:
        """Return the definition's fields."""
        return self._record.fields

    def is_typed(self) -> str:
        """Return SQL for whether a record has all keys, no others, and their types."""
        good = f"^ARRAY<{object_pattern(self._record.fields)}>$"
        return typed_sql("document", good, self._record.fields)

    def shape_rules(self) -> tuple[Rule, ...]:
        """Return the rules that a value must keep to be a JSON object at all."""
        return (
            Rule(
                reason="empty",
                when="value IS NULL OR length(value) = 0",
                detail="'the record has no value'",
            ),
            *text_rules(self._record),
            *object_rules(),
        )

    def key_problem(self) -> str:
        """Return the first problem with keys and types."""
        record = self._record
        problem = key_problem(record.fields, "document", "$[0]", record.unknown_keys)
        if record.unknown_keys == "ignore":
            return problem
        unknown = unknown_key_problem(record.fields, "json_object_keys(text)")
        return f"coalesce({problem}, {unknown})"

    def has_ranges(self) -> None:
        """Return None: ranges are for all records."""


def typed_sql(variant: str, pattern: str, fields: Mapping[str, Field]) -> str:
    """Return SQL for whether a variant has a good schema, and its raw fields good values."""
    is_shaped = f"coalesce(schema_of_variant({variant}) RLIKE '{pattern}', false)"
    suspicious = is_suspicious_sql(fields, "record_fields")
    return is_shaped if suspicious is None else f"{is_shaped} AND NOT coalesce({suspicious}, false)"


def text_rules(record: Record) -> tuple[Rule, ...]:
    """Return the rules for a value of any format that is text."""
    return (
        Rule(
            reason="too-large",
            when=f"length(value) > {record.max_bytes}",
            detail=f"concat(length(value), ' bytes, at most {record.max_bytes}')",
        ),
        Rule(
            reason="not-utf-8",
            when="NOT is_valid_utf8(text)",
            detail="'the bytes are not UTF-8'",
        ),
    )


def object_rules() -> tuple[Rule, ...]:
    """Return the rules that a text is one JSON object.

    A text with a bracket too many ends the list early; inside braces it is a syntax error. What
    has good types has an element, of which Spark would make a copy to tell that it is there.
    """
    return (
        Rule(
            reason="not-json",
            when="document IS NULL "
            "OR (NOT is_typed AND variant_get(document, '$[0]', 'variant') IS NULL) "
            "OR variant_get(document, '$[1]', 'variant') IS NOT NULL "
            "OR (contains(text, ']') AND try_parse_json(concat('{\"r\":', text, '}')) IS NULL)",
            detail="concat('not one JSON value, in ', length(value), ' bytes')",
        ),
        Rule(
            reason="not-an-object",
            when="NOT startswith(ltrim(' \\t\\r\\n', text), '{')",
            detail=f"concat('expected an object, got ', {json_kind_sql(_KIND)})",
        ),
    )
