"""A definition as TOML: a line for each plain field, a table for each that has others inside."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_BARE = re.compile("[A-Za-z0-9_-]+")


def toml_table(place: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table and of the tables in it."""
    header = ".".join(_key(step) for step in place)
    plain = {name: one for name, one in table.items() if not _is_deep(one)}
    if plain or not table:
        yield f"[{header}]"
    for name, one in plain.items():
        yield f"{_key(name)} = {_value(one)}"
    if plain:
        yield ""
    for name, one in table.items():
        if _is_deep(one):
            yield from toml_table((*place, name), one)


def _is_deep(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(one, dict) for one in value.values())


def _key(name: str) -> str:
    return (
        name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else _text(name)
    )


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(n)} = {_value(one)}" for n, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
