"""Changes of a database's rows, in the envelope of Debezium: JSON with `schema` and `payload`.

    [record]
    envelope = "debezium"
    key = ["id"]                           fields that tell rows apart
    event_time = "coalesce(changed_at, timestamp)"
    [record.fields]                        the columns of the row
    id = { type = "integer" }

A record is the row after the change, or before it when it was deleted. Columns are added to it:

    op              c (created), u (updated), r (read, in a snapshot), d (deleted), or `tombstone`
    changed_at      when the database changed it, or Debezium if the database does not say
    before          the row before, and
    change_source   where it comes from: database, table, position; both as JSON

A tombstone, a record without a value, follows a deletion so that compaction removes the key. It
and a deletion have their key only for certain, from the record's key where `before` lacks it; other
rules about fields are not for them. So a table follows the database by

    MERGE INTO rows USING changes ON rows.id = changes.id
    WHEN MATCHED AND op IN ('d', 'tombstone') THEN DELETE WHEN MATCHED THEN UPDATE SET *
    WHEN NOT MATCHED AND op NOT IN ('d', 'tombstone') THEN INSERT *

given the last change of each key, which is the one with the greatest offset in its partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.definitions.definition import Rule
from spark_jobs.definitions.field_rules import (
    MISSING_KEY,
    key_problem,
    problem_struct,
    unknown_key_problem,
)
from spark_jobs.definitions.field_sql import object_pattern, quoted, raw_struct, raw_type, sql_text
from spark_jobs.definitions.fields import key_of
from spark_jobs.record_formats.json_records import (
    DOCUMENT_SQL,
    object_rules,
    text_rules,
    typed_sql,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_jobs.definitions.definition import Record
    from spark_jobs.definitions.fields import Field

_HAS_NO_VALUE = "(value IS NULL OR length(value) = 0)"
_GONE = "op IN ('d', 'tombstone')"
_ROW = "CASE WHEN record_change.op = 'd' THEN record_change.before ELSE record_change.after END"
_KEYS = "map_keys(try_variant_get(row_document, '$', 'map<string,variant>'))"


def _json_of(key: str) -> str:
    return f"to_json(variant_get(document, concat(record_place, '.{key}'), 'variant'))"


class ChangeRecords:
    """The SQL that reads Debezium's envelope."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def columns(self) -> dict[str, str]:
        """Return the envelope, the row of it as a variant, and as raw fields."""
        row = raw_struct(self._record.fields)
        envelope = f"before:{row},after:{row},op:string,ts_ms:bigint,source:struct<ts_ms:bigint>"
        both = sql_text(f"struct<payload:struct<{envelope}>,{envelope}>")
        names = ("before", "after", "op", "ts_ms", "source")
        bare = ", ".join(f"'{name}', record_envelope.{name}" for name in names)
        ms = "coalesce(record_change.source.ts_ms, record_change.ts_ms)"
        return {
            "document": DOCUMENT_SQL,
            "record_envelope": f"from_json(text, {both})",
            "record_change": f"coalesce(record_envelope.payload, named_struct({bare}))",
            "record_place": "CASE WHEN variant_get(document, '$[0].payload', 'variant') IS NULL "
            "THEN '$[0]' ELSE '$[0].payload' END",
            "op": f"CASE WHEN {_HAS_NO_VALUE} THEN 'tombstone' ELSE record_change.op END",
            "changed_at": f"CASE WHEN {ms} BETWEEN 0 AND 253402300799999 "
            f"THEN timestamp_millis({ms}) END",
            "before": _json_of("before"),
            "change_source": _json_of("source"),
            "row_document": "variant_get(document, concat(record_place, "
            "CASE WHEN op = 'd' THEN '.before' ELSE '.after' END), 'variant')",
            "record_fields": self._row_sql(),
        }

    def _row_sql(self) -> str:
        """Return SQL for the row, whose key may come from the record's key."""
        keys = {name: self._record.fields[name] for name in self._record.key}
        inner = raw_struct(keys)[len("struct<") : -1]
        struct = sql_text(f"struct<payload:struct<{inner}>,{inner}>")
        parsed = f"from_json(cast(key AS string), {struct})"
        pairs = []
        for name, field in self._record.fields.items():
            key = quoted(key_of(name, field))
            value = f"({_ROW}).{key}"
            if name in self._record.key:
                value = f"coalesce({value}, {parsed}.payload.{key}, {parsed}.{key})"
            pairs.append(f"{sql_text(key_of(name, field))}, cast({value} AS {raw_type(field)})")
        return f"named_struct({', '.join(pairs)})"

    def fields(self) -> Mapping[str, Field]:
        """Return the definition's fields."""
        return self._record.fields

    def is_typed(self) -> str:
        """Return SQL for whether the row has all keys, no others, and their types."""
        good = f"^{object_pattern(self._record.fields)}$"
        return f"NOT {_GONE} AND {typed_sql('row_document', good, self._record.fields)}"

    def shape_rules(self) -> tuple[Rule, ...]:
        """Return the rules that a value must keep to be an envelope, or none at all."""
        row = "coalesce(startswith(schema_of_variant(row_document), 'OBJECT'), false)"
        with_value = [
            rule.model_copy(update={"when": f"NOT {_HAS_NO_VALUE} AND ({rule.when})"})
            for rule in (*text_rules(self._record), *object_rules())
        ]
        return (
            *with_value,
            Rule(
                reason="not-an-envelope",
                when="op IS NULL OR op NOT IN ('c', 'u', 'r', 'd', 'tombstone')",
                detail="concat('expected op c, u, r or d, got ', coalesce(op, 'none'))",
            ),
            Rule(
                reason="not-an-envelope",
                when=f"NOT {_GONE} AND NOT {row}",
                detail="concat('op ', op, ' without the row after it')",
            ),
        )

    def key_problem(self) -> str:
        """Return the first problem with the row, or with the key of one that is gone."""
        record = self._record
        problem = key_problem(record.fields, "row_document", "$", record.unknown_keys)
        if record.unknown_keys == "reject":
            problem = f"coalesce({problem}, {unknown_key_problem(record.fields, _KEYS)})"
        gone = " ".join(
            f"WHEN {name} IS NULL THEN {problem_struct(MISSING_KEY, sql_text(name))}"
            for name in record.key
        )
        return f"CASE WHEN {_GONE} THEN CASE {gone} END ELSE {problem} END"

    def has_ranges(self) -> str:
        """Return the condition for rows that are there."""
        return f"NOT {_GONE}"
