"""A definition from a sample of records."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from spark_jobs.definition_tools.definition_toml import toml_table
from spark_jobs.definition_tools.sample_types import (
    Seen,
    UnreadableError,
    event_time,
    parsed_object,
    typed_fields,
)
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Sequence

Sampled = tuple[bytes | None, bytes | None]
"""The key and the value of a record."""

OPS = {"c", "u", "r", "d"}
CHANGE_TIME = "coalesce(changed_at, timestamp)"
USUAL_BYTES = 1_000_000
"""What a record may have by a definition that does not say."""


def inferred(records: Sequence[Sampled], topic: str) -> str:
    """Return a definition by which all records of a sample that are JSON objects are valid.

    Raises `JobError` when there are none.
    """
    objects, keys = _readable(records)
    if not objects:
        raise JobError(f"topic '{topic}': of {len(records):,} records none is a JSON object")
    notes = [f"# Inferred from {len(records):,} records of the topic {topic}."]
    others = sum(1 for _, value in records if value) - len(objects)
    if others:
        notes.append(f"# {others:,} of them are no JSON objects, and will be rejects.")
    rows, names = _rows(objects), _key_names(keys)
    is_change = bool(rows and names)
    seen = Seen()
    for one in rows if is_change else objects:
        seen.add(one)
    fields, left_out = typed_fields(seen)
    if not fields:
        raise JobError(f"topic '{topic}': its objects have no keys that a column could have")
    record: dict[str, Any] = {"event_time": event_time(fields)}
    if is_change:
        key = [name for name, one in fields.items() if one.get("key", name) in names]
        record = {"envelope": "debezium", "key": key, "event_time": CHANGE_TIME}
    if left_out:
        record["unknown_keys"] = "ignore"
        notes.append(f"# No columns for {len(left_out)} keys: {', '.join(map(ascii, left_out))}")
    largest = max(len(value or b"") for _, value in records)
    if largest > USUAL_BYTES:
        record["max_bytes"] = 2 * largest
    tables = (*toml_table(("record",), record), *toml_table(("record", "fields"), fields))
    return "\n".join((*notes, "", *tables))


def _readable(records: Sequence[Sampled]) -> tuple[list[dict[str, Any]], list[bytes | None]]:
    """Return the objects of the records that are one, and the keys of these."""
    objects, keys = [], []
    for key, value in records:
        with suppress(UnreadableError):
            if value:
                objects.append(parsed_object(value))
                keys.append(key)
    return objects, keys


def _rows(objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of changes in Debezium's envelope; none if a record is anything else."""
    rows = []
    for one in objects:
        change = one.get("payload", one)
        if not isinstance(change, dict) or change.get("op") not in OPS or "after" not in change:
            return []
        row = change["after"]
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _key_names(keys: Sequence[bytes | None]) -> list[str]:
    try:
        found = [parsed_object(key or b"") for key in keys]
    except UnreadableError:
        return []
    payloads = [one.get("payload", one) for one in found]
    return list(payloads[0]) if payloads and isinstance(payloads[0], dict) else []
