"""Field specifiers: one line of a message declaration each.

A specifier gives the type, the versions in which the field is present (default: all versions of its
struct), whether it may be null, its tag (KIP-482) and its default. They are typed `Any`, so that
`partition: int = int32()` is accepted by a type checker; `protocol.schema` collects them.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Any, Final

from protocol.uuids import ZERO_UUID
from protocol.versions import ALL_VERSIONS, NO_VERSIONS, Versions

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(enum.Enum):
    """Wire types."""

    BOOL = enum.auto()
    INT8 = enum.auto()
    INT16 = enum.auto()
    UINT16 = enum.auto()
    INT32 = enum.auto()
    INT64 = enum.auto()
    FLOAT64 = enum.auto()
    UUID = enum.auto()
    STRING = enum.auto()
    BYTES = enum.auto()
    RECORDS = enum.auto()
    ARRAY = enum.auto()
    STRUCT = enum.auto()

    @property
    def struct_code(self) -> str:
        """Format character of the `struct` module, or an empty string when the size varies."""
        return _STRUCT_CODES.get(self, "")


_STRUCT_CODES = {
    Kind.BOOL: "?",
    Kind.INT8: "b",
    Kind.INT16: "h",
    Kind.UINT16: "H",
    Kind.INT32: "i",
    Kind.INT64: "q",
    Kind.FLOAT64: "d",
    Kind.UUID: "16s",
}


class Unset(enum.Enum):
    """Marks "no default was declared", since None is itself a legal default."""

    UNSET = 0


UNSET: Final = Unset.UNSET


@dataclasses.dataclass(slots=True)
class Field:
    """One declared field. `name` is filled in by the struct that owns it."""

    kind: Kind
    versions: Versions
    """Versions that have the field."""

    tag: int | None
    """Fields with a tag are in the tag section; all versions that have them are flexible."""

    default: Any
    """None, a scalar, () for an empty list, or UNSET for a struct of defaults."""

    nullable: Versions = NO_VERSIONS
    element: Field | None = None
    """Of an array: the type of its elements."""

    struct: type[Any] | None = None
    name: str = ""


def _present(versions: str) -> Versions:
    return Versions.parse(versions) if versions else ALL_VERSIONS


def _nullable(versions: str) -> Versions:
    return Versions.parse(versions) if versions else NO_VERSIONS


def boolean(versions: str = "", *, default: object = False, tag: int | None = None) -> Any:
    """One byte, zero is false."""
    return Field(Kind.BOOL, _present(versions), tag, default)


def int8(versions: str = "", *, default: object = 0, tag: int | None = None) -> Any:
    """Signed, one byte."""
    return Field(Kind.INT8, _present(versions), tag, default)


def int16(versions: str = "", *, default: object = 0, tag: int | None = None) -> Any:
    """Signed, two bytes, big-endian."""
    return Field(Kind.INT16, _present(versions), tag, default)


def uint16(versions: str = "", *, default: object = 0, tag: int | None = None) -> Any:
    """Unsigned, two bytes, big-endian (ports)."""
    return Field(Kind.UINT16, _present(versions), tag, default)


def int32(versions: str = "", *, default: object = 0, tag: int | None = None) -> Any:
    """Signed, four bytes, big-endian."""
    return Field(Kind.INT32, _present(versions), tag, default)


def int64(versions: str = "", *, default: object = 0, tag: int | None = None) -> Any:
    """Signed, eight bytes, big-endian."""
    return Field(Kind.INT64, _present(versions), tag, default)


def float64(versions: str = "", *, default: object = 0.0, tag: int | None = None) -> Any:
    """IEEE 754 double, big-endian."""
    return Field(Kind.FLOAT64, _present(versions), tag, default)


def uuid(versions: str = "", *, default: object = ZERO_UUID, tag: int | None = None) -> Any:
    """Sixteen raw bytes; `ZERO_UUID` stands for none."""
    return Field(Kind.UUID, _present(versions), tag, default)


def string(
    versions: str = "",
    *,
    default: object = "",
    nullable: str = "",
    tag: int | None = None,
) -> Any:
    """UTF-8 (see `protocol.wire`) with a two-byte length, a uvarint length + 1 where flexible."""
    return Field(Kind.STRING, _present(versions), tag, default, _nullable(nullable))


def blob(
    versions: str = "",
    *,
    default: object = b"",
    nullable: str = "",
    tag: int | None = None,
) -> Any:
    """Opaque bytes with a four-byte length, or a uvarint length + 1 in flexible versions."""
    return Field(Kind.BYTES, _present(versions), tag, default, _nullable(nullable))


def records(
    versions: str = "", *, default: object = None, nullable: str = "", tag: int | None = None
) -> Any:
    """Record batches: decoded to a slice of the frame, encoded from a buffer or a file region."""
    return Field(Kind.RECORDS, _present(versions), tag, default, _nullable(nullable))


def array(
    element: type[Any] | Callable[..., Any],
    versions: str = "",
    *,
    default: object = (),
    nullable: str = "",
    tag: int | None = None,
) -> Any:
    """A list of structs (`array(Topic)`) or of primitives (`array(int32)`)."""
    field = Field(Kind.ARRAY, _present(versions), tag, default, _nullable(nullable))
    if isinstance(element, type):
        field.element = Field(Kind.STRUCT, ALL_VERSIONS, None, UNSET, struct=element)
    else:
        field.element = element()
    return field


def struct(
    cls: type[Any],
    versions: str = "",
    *,
    default: object = UNSET,
    nullable: str = "",
    tag: int | None = None,
) -> Any:
    """A single nested struct; with `default=None` and `nullable`, it may be absent."""
    field = Field(Kind.STRUCT, _present(versions), tag, default, _nullable(nullable))
    field.struct = cls
    return field
