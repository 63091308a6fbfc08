"""Field specifiers: one line of a message declaration each.

A specifier says the type, the versions in which the field is present (default: all versions of its
struct), whether it may be null, its tag (KIP-482) and its default. They are typed `Any`, so that
`partition: int = int32()` reads as what it is to a type checker; `protocol.schema` collects them.
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
    """Wire types. The value is the `struct` code of fixed-size ones, empty for the others."""

    BOOL = "?"
    INT8 = "b"
    INT16 = "h"
    UINT16 = "H"
    INT32 = "i"
    INT64 = "q"
    FLOAT64 = "d"
    UUID = "16s"
    STRING = ""
    BYTES = " "
    RECORDS = "  "
    ARRAY = "   "
    STRUCT = "    "

    @property
    def struct_code(self) -> str:
        """`struct` format character, or an empty string when the size varies."""
        return self.value.strip()


class Unset(enum.Enum):
    """Marks "no default was declared", since None is itself a legal default."""

    UNSET = 0


UNSET: Final = Unset.UNSET


@dataclasses.dataclass(slots=True)
class Field:
    """One declared field. `name` is filled in by the struct that owns it."""

    kind: Kind
    versions: Versions
    default: Any
    nullable: Versions = NO_VERSIONS
    tag: int | None = None
    tagged: Versions = NO_VERSIONS
    element: Field | None = None
    struct: type[Any] | None = None
    name: str = ""

    def default_value(self) -> Any:
        """What a reader of a version without this field sees. A fresh object where it is mutable."""
        if self.kind is Kind.ARRAY and self.default is not None:
            return list(self.default)
        if self.kind is Kind.STRUCT and self.default is UNSET:
            assert self.struct is not None
            return self.struct()
        return self.default


def _field(
    kind: Kind, versions: str, default: Any, nullable: str, tag: int | None, tagged: str
) -> Any:
    present = Versions.parse(versions) if versions else ALL_VERSIONS
    return Field(
        kind=kind,
        versions=present,
        default=default,
        nullable=Versions.parse(nullable) if nullable else NO_VERSIONS,
        tag=tag,
        tagged=NO_VERSIONS if tag is None else Versions.parse(tagged) if tagged else present,
    )


def boolean(
    versions: str = "", *, default: Any = False, tag: int | None = None, tagged: str = ""
) -> Any:
    """One byte, zero is false."""
    return _field(Kind.BOOL, versions, default, "", tag, tagged)


def int8(versions: str = "", *, default: Any = 0, tag: int | None = None, tagged: str = "") -> Any:
    """Signed, one byte."""
    return _field(Kind.INT8, versions, default, "", tag, tagged)


def int16(versions: str = "", *, default: Any = 0, tag: int | None = None, tagged: str = "") -> Any:
    """Signed, two bytes, big-endian."""
    return _field(Kind.INT16, versions, default, "", tag, tagged)


def uint16(
    versions: str = "", *, default: Any = 0, tag: int | None = None, tagged: str = ""
) -> Any:
    """Unsigned, two bytes, big-endian (ports)."""
    return _field(Kind.UINT16, versions, default, "", tag, tagged)


def int32(versions: str = "", *, default: Any = 0, tag: int | None = None, tagged: str = "") -> Any:
    """Signed, four bytes, big-endian."""
    return _field(Kind.INT32, versions, default, "", tag, tagged)


def int64(versions: str = "", *, default: Any = 0, tag: int | None = None, tagged: str = "") -> Any:
    """Signed, eight bytes, big-endian."""
    return _field(Kind.INT64, versions, default, "", tag, tagged)


def float64(
    versions: str = "", *, default: Any = 0.0, tag: int | None = None, tagged: str = ""
) -> Any:
    """IEEE 754 double, big-endian."""
    return _field(Kind.FLOAT64, versions, default, "", tag, tagged)


def uuid(
    versions: str = "", *, default: Any = ZERO_UUID, tag: int | None = None, tagged: str = ""
) -> Any:
    """Sixteen raw bytes; `ZERO_UUID` stands for none."""
    return _field(Kind.UUID, versions, default, "", tag, tagged)


def string(
    versions: str = "",
    *,
    default: Any = "",
    nullable: str = "",
    tag: int | None = None,
    tagged: str = "",
) -> Any:
    """UTF-8 with a two-byte length, or a uvarint length + 1 in flexible versions."""
    return _field(Kind.STRING, versions, default, nullable, tag, tagged)


def blob(
    versions: str = "",
    *,
    default: Any = b"",
    nullable: str = "",
    tag: int | None = None,
    tagged: str = "",
) -> Any:
    """Opaque bytes with a four-byte length, or a uvarint length + 1 in flexible versions."""
    return _field(Kind.BYTES, versions, default, nullable, tag, tagged)


def records(
    versions: str = "", *, default: Any = None, nullable: str = "", tag: int | None = None
) -> Any:
    """Record batches. Decoded to a `memoryview` of the frame; encoded from a buffer or a file region."""
    return _field(Kind.RECORDS, versions, default, nullable, tag, "")


def array(
    element: type[Any] | Callable[..., Any],
    versions: str = "",
    *,
    default: Any = (),
    nullable: str = "",
    tag: int | None = None,
    tagged: str = "",
) -> Any:
    """A list of structs (`array(Topic)`) or of primitives (`array(int32)`)."""
    field: Field = _field(Kind.ARRAY, versions, default, nullable, tag, tagged)
    if isinstance(element, type):
        field.element = Field(Kind.STRUCT, ALL_VERSIONS, UNSET, struct=element)
    else:
        field.element = element()
    return field


def struct(
    cls: type[Any],
    versions: str = "",
    *,
    default: Any = UNSET,
    nullable: str = "",
    tag: int | None = None,
    tagged: str = "",
) -> Any:
    """A single nested struct; with `default=None` and `nullable`, it may be absent."""
    field: Field = _field(Kind.STRUCT, versions, default, nullable, tag, tagged)
    field.struct = cls
    return field
