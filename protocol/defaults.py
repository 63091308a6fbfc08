"""Writes the source that makes default values, for constructors and decoders.

A struct of defaults is made in place, without a call of its constructor, because the responses of
Produce and Fetch have up to three of them per partition.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from protocol.fields import UNSET, Field, Kind

if TYPE_CHECKING:
    from protocol.schema import Struct
    from protocol.source import Source


def blank(source: Source, cls: type[Struct]) -> str:
    """Expression that makes an object of `cls` with no field set."""
    return source.bind(cls.__name__, functools.partial(object.__new__, cls)) + "()"


def write_default(source: Source, field: Field, place: str) -> None:
    """Put the default of `field` into `place`: a fresh object, where it can be changed."""
    if field.default is not UNSET:
        source.line(f"{place} = {_expression(source, field)}")
        return
    assert field.struct is not None
    made = source.variable(field.name)
    source.line(f"{made} = {blank(source, field.struct)}")
    for inner in field.struct.FIELDS:
        write_default(source, inner, f"{made}.{inner.name}")
    source.line(f"{place} = {made}")


def _expression(source: Source, field: Field) -> str:
    if field.kind is Kind.ARRAY and field.default is not None:
        return "[]"
    if field.default is None or isinstance(field.default, bool | int | float | str | bytes):
        return repr(field.default)
    return source.bind("default", field.default)
