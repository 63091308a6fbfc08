"""Hypothesis strategies that follow the declarations."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from protocol.fields import Field, Kind
from tests.golden import declarations
from tests.golden.values import Filling

if TYPE_CHECKING:
    from protocol.schema import Message, Struct

_TEXT = st.text(st.characters(codec="utf-8"), max_size=150)

_SCALARS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOL: st.booleans(),
    Kind.INT8: st.integers(-(2**7), 2**7 - 1),
    Kind.INT16: st.integers(-(2**15), 2**15 - 1),
    Kind.UINT16: st.integers(0, 2**16 - 1),
    Kind.INT32: st.integers(-(2**31), 2**31 - 1),
    Kind.INT64: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT64: st.floats(allow_nan=False),
    Kind.UUID: st.uuids(),
    Kind.STRING: _TEXT,
    Kind.BYTES: st.binary(max_size=200),
    Kind.RECORDS: st.binary(max_size=200),
}

_instances: dict[tuple[str, str, int], st.SearchStrategy[Any]] = {}


def every_version() -> list[tuple[type[Message], int]]:
    """Every (message, version)."""
    return [
        (message, version)
        for _, message in sorted(declarations.messages().items())
        for version in range(message.VERSIONS.first, message.VERSIONS.last + 1)
    ]


@functools.cache
def filled_bytes(message: type[Message], version: int) -> bytes:
    """A valid message in which every field has a value of its own."""
    ours, _json = Filling(version).of(message)
    encoded: bytes = ours.encode(version)
    return encoded


def instances(struct: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Objects with arbitrary values in the fields that `version` has."""
    key = (struct.__module__, struct.__qualname__, version)
    if key not in _instances:
        _instances[key] = _built(struct, version)
    return _instances[key]


def _built(struct: type[Struct], version: int) -> st.SearchStrategy[Any]:
    present = [field for field in struct.FIELDS if version in field.versions]
    return st.builds(struct, **{field.name: _values(field, version) for field in present})


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = _present_values(field, version)
    return st.none() | values if version in field.nullable else values


def _present_values(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.kind is Kind.STRUCT:
        assert field.struct is not None
        return instances(field.struct, version)
    if field.kind is Kind.ARRAY:
        assert field.element is not None
        return st.lists(_present_values(field.element, version), max_size=3)
    return _SCALARS[field.kind]
