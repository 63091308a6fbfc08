"""Values for every field of a message: told by its place, different in each, never the default.

A message is built twice from the same values: as an object of ours, and as the JSON that Kafka's
converters read.
"""

from __future__ import annotations

import base64
import functools
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from protocol.fields import Field, Kind
from protocol.uuids import to_base64
from tests.golden.definitions import VERSIONS, definitions, snake_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.schema import Message, Struct

ELEMENTS = 2
"""In every array."""

LENGTHS = (1, 5, 126, 127, 128, 300)
"""Of strings and bytes: around the point where an unsigned varint takes a second byte."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Rules to fill one message: for `version`, with null in the field at `null_path`.

    Fields in `omitted` keep their defaults, as Kafka's class does not know them.
    """

    version: int
    null_path: str = ""
    omitted: frozenset[str] = frozenset()

    def of(self, message: type[Message]) -> tuple[Any, dict[str, Any]]:
        """The object of ours, and its JSON, still with our names (see `with_kafkas_names`)."""
        return self._struct(message, "")

    def _struct(self, cls: type[Struct], path: str) -> tuple[Any, dict[str, Any]]:
        ours, json = {}, {}
        for field in cls.FIELDS:
            if self.version in field.versions and field.name not in self.omitted:
                value, shown = self._field(field, f"{path}/{field.name}")
                ours[field.name] = value
                json[field.name] = shown
        return cls(**ours), json

    def _field(self, field: Field, path: str) -> tuple[Any, Any]:
        if _without_indexes(path) == self.null_path:
            return None, None
        if field.kind is Kind.ARRAY:
            assert field.element is not None
            pairs = [self._value(field.element, f"{path}#{index}") for index in range(ELEMENTS)]
            return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return self._value(field, path)

    def _value(self, field: Field, path: str) -> tuple[Any, Any]:
        if field.kind is Kind.STRUCT:
            assert field.struct is not None
            return self._struct(field.struct, path)
        value = scalar(field.kind, path)
        if value == field.default:
            value = scalar(field.kind, path + "!")
        return value, _as_json(field.kind, value)


def null_paths(message: type[Message], version: int) -> Iterator[str]:
    """Paths of the fields that may be null in `version`."""
    for path, field in _fields(message, version, ""):
        if version in field.nullable:
            yield path


def scalar(kind: Kind, seed: str) -> Any:
    """A value of `kind` that `seed` determines."""
    number = zlib.crc32(seed.encode())
    if kind is Kind.BOOL:
        return seed[-1] != "!"
    if kind is Kind.FLOAT64:
        return number / 1024
    if kind is Kind.UUID:
        return UUID(bytes=b"".join(struct.pack(">I", number ^ part) for part in range(4)))
    if kind.struct_code:
        return _integer(kind, number)
    size = LENGTHS[number % len(LENGTHS)]
    text = (seed + "é" * size)[-size:]
    return text if kind is Kind.STRING else text.encode("utf-8")


def _integer(kind: Kind, number: int) -> int:
    size = struct.calcsize(kind.struct_code)
    raw = number.to_bytes(4, "big") * 2
    value: int = struct.unpack(">" + kind.struct_code, raw[:size])[0]
    return value


def _as_json(kind: Kind, value: Any) -> Any:
    if kind is Kind.UUID:
        return to_base64(value)
    if kind in {Kind.BYTES, Kind.RECORDS}:
        return base64.b64encode(value).decode("ascii")
    return value


def _fields(cls: type[Struct], version: int, path: str) -> Iterator[tuple[str, Field]]:
    for field in cls.FIELDS:
        if version in field.versions:
            inner = f"{path}/{field.name}"
            yield inner, field
            members = field.struct if field.element is None else field.element.struct
            if members is not None:
                yield from _fields(members, version, inner)


def _without_indexes(path: str) -> str:
    return "/".join(part.partition("#")[0] for part in path.split("/"))


def with_kafkas_names(json: Any) -> Any:
    """The same JSON with the names of fields as Kafka's converters want them."""
    if isinstance(json, dict):
        return {_camel_names()[key]: with_kafkas_names(value) for key, value in json.items()}
    if isinstance(json, list):
        return [with_kafkas_names(value) for value in json]
    return json


@functools.cache
def _camel_names() -> dict[str, str]:
    names: dict[str, str] = {}
    for version in VERSIONS:
        for definition in definitions(version).values():
            for name in _names(definition.body):
                camel = name[0].lower() + name[1:]
                assert names.setdefault(snake_case(name), camel) == camel, name
    return names


def _names(body: dict[str, Any]) -> Iterator[str]:
    for field in body.get("fields", ()):
        yield field["name"]
        yield from _names(field)
    for common in body.get("commonStructs", ()):
        yield from _names(common)
