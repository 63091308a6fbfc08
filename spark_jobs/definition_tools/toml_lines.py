"""The line of each key of a TOML file, which Python's parser does not tell.

Headers and keys at the beginning of lines are found; a key inside an inline table has the line
of the table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_jobs.definitions.mistakes import Place

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]")
_ASSIGNED = re.compile(rf"\s*({_KEYS})\s*=")
_QUOTES = re.compile("\"\"\"|'''")


def lines_of_keys(text: str) -> dict[Place, int]:
    """Return the line, from 1 on, at which each key of the file stands."""
    lines: dict[Place, int] = {(): 1}
    counts: dict[Place, int] = {}
    table: Place = ()
    is_inside = False  # a text of several lines
    for number, line in enumerate(text.splitlines(), 1):
        begins_inside = is_inside
        is_inside ^= len(_QUOTES.findall(line)) % 2 == 1
        if begins_inside:
            continue
        if header := _HEADER.match(line):
            table = _numbered(_split(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif assigned := _ASSIGNED.match(line):
            lines.setdefault((*table, *_split(assigned[1])), number)
    return lines


def line_of(place: Place, lines: Mapping[Place, int]) -> int:
    """Return the line of a key, or of the nearest table around it that has one."""
    if place in lines:
        return lines[place]
    inside = [number for known, number in lines.items() if place and known[: len(place)] == place]
    return min(inside) if inside else line_of(place[:-1], lines)


def _split(keys: str) -> Place:
    return tuple(key.strip("\"'") for key in re.findall(_KEY, keys))


def _numbered(keys: Place, counts: Mapping[Place, int]) -> Place:
    """Return the keys of a header, with the number of the last table after each array of tables."""
    place: Place = ()
    for key in keys[:-1]:
        place = (*place, key)
        place = (*place, counts[place]) if place in counts else place
    return (*place, *keys[-1:])
