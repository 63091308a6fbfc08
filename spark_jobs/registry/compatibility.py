"""Levels of compatibility: which earlier versions a new schema is held against, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.registry.schema_types.avro_schema import AVRO
from spark_jobs.registry.schema_types.json_schema import JSON
from spark_jobs.registry.schema_types.protobuf_schema import PROTOBUF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.registry.schema_types.schema_type import ParsedSchema

TRANSITIVE = "_TRANSITIVE"
LEVELS = (
    *("NONE", "BACKWARD", "FORWARD", "FULL"),
    *("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"),
)
SCHEMA_TYPES = {"JSON": JSON, "PROTOBUF": PROTOBUF, "AVRO": AVRO}
"""As `GET /schemas/types` lists them."""

Typed = tuple[str, "ParsedSchema"]
"""A schema with the name of its type."""


def incompatibilities(level: str, new: Typed, earlier: Sequence[Typed]) -> list[str]:
    """Return what keeps a schema from being the next version after `earlier`, oldest first."""
    if level == "NONE":
        return []
    kind = level.removesuffix(TRANSITIVE)
    found: list[str] = []
    for old in reversed(earlier if level.endswith(TRANSITIVE) else earlier[-1:]):
        if old[0] != new[0]:
            return [f"SCHEMA_TYPE_CHANGED: {old[0]} became {new[0]}"]
        compare = SCHEMA_TYPES[new[0]].incompatibilities
        if kind in {"BACKWARD", "FULL"}:
            found += compare(new[1], old[1])
        if kind in {"FORWARD", "FULL"}:
            found += compare(old[1], new[1])
        if found:
            break
    return found
