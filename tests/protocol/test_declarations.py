"""Declarations say the same to the type checker as to the compiler, and each says something."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from protocol.fields import UNSET, Field, Kind
from protocol.versions import NO_VERSIONS
from tests.golden import declarations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.schema import Struct

TYPES = {
    Kind.BOOL: "bool",
    Kind.INT8: "int",
    Kind.INT16: "int",
    Kind.UINT16: "int",
    Kind.INT32: "int",
    Kind.INT64: "int",
    Kind.FLOAT64: "float",
    Kind.UUID: "UUID",
    Kind.STRING: "str",
    Kind.BYTES: "bytes",
    Kind.RECORDS: "Part",
}


def structs(cls: type[Struct]) -> Iterator[type[Struct]]:
    yield cls
    for field in cls.FIELDS:
        inner = field.struct if field.element is None else field.element.struct
        if inner is not None:
            yield from structs(inner)


def annotation(field: Field) -> str:
    if field.kind is Kind.ARRAY:
        assert field.element is not None
        text = f"list[{annotation(field.element)}]"
    elif field.kind is Kind.STRUCT:
        assert field.struct is not None
        text = field.struct.__name__
    else:
        text = TYPES[field.kind]
    may_be_none = field.nullable != NO_VERSIONS or field.kind is Kind.RECORDS
    return f"{text} | None" if may_be_none else text


@pytest.mark.parametrize("name", sorted(declarations.messages()))
def test_annotations_are_those_of_the_specifiers(name: str) -> None:
    for struct in structs(declarations.messages()[name]):
        annotated = inspect.get_annotations(struct)
        expected = {field.name: annotation(field) for field in struct.FIELDS}
        assert annotated == expected, struct.__qualname__


@pytest.mark.parametrize("name", sorted(declarations.messages()))
def test_every_struct_has_a_descriptive_docstring(name: str) -> None:
    for struct in structs(declarations.messages()[name]):
        first_line = (struct.__dict__.get("__doc__") or "").partition("\n")[0]
        assert first_line.endswith("."), struct.__qualname__
        assert not first_line.startswith(("One of the `", "The `", "Part of")), struct.__qualname__


def test_null_defaults_are_allowed_nulls() -> None:
    for message in declarations.messages().values():
        for struct in structs(message):
            for field in struct.FIELDS:
                if field.default is None and field.kind is not Kind.RECORDS:
                    assert field.nullable != NO_VERSIONS, (struct.__qualname__, field.name)
                if field.default is UNSET:
                    assert field.kind is Kind.STRUCT
