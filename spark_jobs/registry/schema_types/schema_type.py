"""One parsed schema, and the port that each type of schema implements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class InvalidSchemaError(ValueError):
    """A text is no schema of its type; the message says why."""


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A schema that has been read and checked."""

    text: str
    """As it is stored and answered."""

    identity: str
    """Equal for schemas that differ in nothing but their writing."""

    normalised: str
    """The text in its normal form."""

    model: Any
    """The type's own form of it."""


@dataclass(frozen=True, slots=True)
class SchemaType:
    """A type of schema."""

    parse: Callable[[str, Mapping[str, str]], ParsedSchema]
    """Read a text, given the texts of all schemas it refers to, by name, dependencies first.

    Raises `InvalidSchemaError`.
    """

    incompatibilities: Callable[[ParsedSchema, ParsedSchema], list[str]]
    """Say why the first cannot read what the second wrote; nothing if it can."""
