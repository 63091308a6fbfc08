"""Our declarations, in the shape of `tests.golden.definitions`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

import protocol.messages
import protocol.metadata_log
from protocol.fields import UNSET, Field, Kind
from protocol.schema import Message, Struct
from protocol.uuids import ZERO_UUID
from tests.golden.definitions import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator


@functools.cache
def messages() -> dict[str, type[Message]]:
    """Every message declared in `protocol.messages` and `protocol.metadata_log`, by name."""
    found: dict[str, type[Message]] = {}
    for package in (protocol.messages, protocol.metadata_log):
        for module_info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(module_info.name)
            for name, value in vars(module).items():
                if is_message(value) and value.__module__ == module.__name__:
                    assert name not in found, f"{name} is declared twice"
                    found[name] = value
    return found


def is_message(value: object) -> bool:
    """Return whether `value` is a class that declares a message."""
    return isinstance(value, type) and issubclass(value, Message)


def layout(message: type[Message], version: int) -> list[Entry]:
    """Fields that `version` has, depth first, in wire order."""
    return list(_entries(message, version, 0, is_flexible=version in message.FLEXIBLE))


def _entries(
    struct: type[Struct], version: int, depth: int, *, is_flexible: bool
) -> Iterator[Entry]:
    for field in struct.FIELDS:
        if version not in field.versions:
            continue
        yield Entry(
            depth=depth,
            name=field.name,
            type=_type(field),
            is_nullable=version in field.nullable,
            tag=field.tag if is_flexible else None,
            default=_default(field),
        )
        inner = field.struct if field.element is None else field.element.struct
        if inner is not None:
            yield from _entries(inner, version, depth + 1, is_flexible=is_flexible)


def _type(field: Field) -> str:
    if field.element is not None:
        return "[]" + _type(field.element)
    return field.kind.name.lower()


def _default(field: Field) -> Any:
    value = field.default
    if field.kind is Kind.ARRAY and value is not None:
        return list(value)
    if field.kind is Kind.STRUCT and value is UNSET:
        return "struct of defaults"
    if field.kind is Kind.UUID:
        return "zero uuid" if value == ZERO_UUID else value
    return value
