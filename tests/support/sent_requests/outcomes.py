"""The part of an answer that depends on authorisation: errors and names, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from protocol.schema import Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAMES = frozenset(
    {
        *("name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "key"),
        *("partition_index", "partition", "partition_id", "index", "resource_name"),
        *("resource_type", "user", "is_internal", "pattern_type", "principal"),
        *("operation", "permission_type"),
        *("topic_authorized_operations", "cluster_authorized_operations"),
        "authorized_operations",
    }
)
"""The fields that say what an error is of, and what can be seen."""


def outcome(message: Struct, topics: Mapping[UUID, str] | None = None) -> Any:
    """The errors and names in an answer, in an order of their own; empty lists are left out.

    `topics` are the names of topic ids, which every cluster draws itself.
    """
    found: dict[str, Any] = {}
    for field in message.FIELDS:
        shown = _shown(field.name, getattr(message, field.name), topics or {})
        if shown is not None:
            found[field.name] = shown
    return found


def _shown(name: str, value: Any, topics: Mapping[UUID, str]) -> Any:
    if isinstance(value, Struct):
        return outcome(value, topics) or None
    if name == "configs":  # which keys there are is another matter
        return bool(value) or None
    if isinstance(value, list):
        shown = [outcome(one, topics) for one in value if isinstance(one, Struct)]
        return sorted((one for one in shown if one), key=repr) or None
    if isinstance(value, UUID):
        return None if value == ZERO_UUID or name != "topic_id" else topics.get(value, "unknown")
    if name in NAMES or name.endswith("error_code"):
        return value
    return None


def errors(message: Struct) -> set[int]:
    """The codes of all errors in an answer, however deep."""
    return set(_errors(message)) - {0}


def _errors(message: Struct) -> Iterator[int]:
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            yield value
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, Struct):
                yield from _errors(one)
