"""Types of fields, from a sample of records: the narrowest that every value has.

Text is a date or a timestamp when all of it is, a whole number a timestamp when all are of our
time and the key says so, an object a map when its keys are many and few are common. A key that some
records lack is optional. What has several types is `json`, and so is what has only been null.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from spark_jobs.definitions.definition import OWN_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Typed = dict[str, Any]
"""A field as it stands in a definition."""

DEEPEST = 20
"""Levels below which values are `json`."""

MAP_KEYS = 20
"""An object with more different keys, most of them rare, is a map."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = re.compile(rf"{_DATE.pattern}T\d\d:\d\d:\d\d(\.\d{{1,6}})?", re.ASCII)
_INSTANT = re.compile(rf"{_CLOCK.pattern}(Z|[+-](0\d|1[0-3]):[0-5]\d)", re.ASCII)
_NAME_OF_TIME = re.compile(
    r"(^|_|[a-z])(at|ts|time|timestamp|date|epoch|ms|millis)$", re.IGNORECASE
)
_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000}
_OUR_TIME = (1_000_000_000, 4_000_000_000)
"""From 2001 to 2096, in seconds since 1970."""

_RESERVED = {
    *OWN_COLUMNS,
    *("value_bytes", "value_crc32", "row_crc32", "event_date", "event_hour"),
    *("op", "changed_at", "before", "change_source", "source"),
}
"""Columns that jobs make beside the fields."""


class UnreadableError(ValueError):
    """A record that is no JSON object, which jobs reject."""


def parsed_object(value: bytes) -> dict[str, Any]:
    """Return a record's object, with fractions as decimals; raise `UnreadableError`."""
    try:
        found = json.loads(
            value.decode(),
            object_pairs_hook=_distinct,
            parse_float=Decimal,
            parse_constant=_no_number,
        )
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise UnreadableError(str(error)) from error
    if not isinstance(found, dict):
        raise UnreadableError(f"a JSON {type(found).__name__}")
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise UnreadableError("the same key twice")
    return dict(pairs)


def _no_number(text: str) -> NoReturn:
    raise UnreadableError(f"{text} is no number in JSON")


@dataclass(slots=True)
class Seen:
    """The values seen at one place of the records."""

    kinds: Counter[str] = field(default_factory=Counter)
    values: set[Any] = field(default_factory=set)
    """Texts and numbers."""

    items: Seen | None = None
    fields: dict[str, Seen] = field(default_factory=dict)

    def add(self, value: object) -> None:
        """Take in one value."""
        kind = "null"
        match value:
            case None:
                pass
            case bool():
                kind = "boolean"
            case int() | Decimal() | str():
                kind = "text" if isinstance(value, str) else "number"
                self.values.add(value)
            case list():
                kind = "array"
                self.items = self.items or Seen()
                for item in value:
                    self.items.add(item)
            case dict():
                kind = "object"
                for key, one in value.items():
                    self.fields.setdefault(key, Seen()).add(one)
        self.kinds[kind] += 1

    def merged(self, others: Iterable[Seen]) -> Seen:
        """Take in all that others have seen; return self."""
        for other in others:
            self.kinds += other.kinds
            self.values |= other.values
            if other.items is not None:
                self.items = (self.items or Seen()).merged([other.items])
            for key, one in other.fields.items():
                self.fields.setdefault(key, Seen()).merged([one])
        return self


def typed_fields(seen: Seen) -> tuple[dict[str, Typed], list[str]]:
    """Return the fields of the records by column, and the keys that no column can have."""
    taken = {name.lower() for name in _RESERVED}
    lower = Counter(key.lower() for key in seen.fields)
    usable = {k: one for k, one in seen.fields.items() if _is_usable(k) and lower[k.lower()] == 1}
    found = {
        _column(key, taken): _typed(key, one, seen.kinds["object"], 1)
        for key, one in usable.items()
    }
    for name, one in found.items():
        if one.get("key") == name:
            del one["key"]
    return found, [key for key in seen.fields if key not in usable]


def _is_usable(key: str) -> bool:
    is_quotable = bool(key) and not ("'" in key and '"' in key)
    is_text = key.encode("utf-8", "ignore").decode() == key
    return is_quotable and is_text and key.isprintable() and "\\" not in key


def _column(key: str, taken: set[str]) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", key)
    name = name if re.match(r"[A-Za-z_]", name) else f"_{name}"
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


def _typed(key: str, seen: Seen, of: int, level: int) -> Typed:
    """Return the type of a key that `of` objects might have."""
    typed: Typed = {"key": key} | _type(key, seen, level)
    if seen.kinds["null"] and typed["type"] != "json":
        typed["nullable"] = True
    if seen.kinds.total() < of:
        typed["optional"] = True
    return typed


def _type(key: str, seen: Seen, level: int) -> Typed:
    kinds = set(seen.kinds) - {"null"}
    if len(kinds) != 1 or level >= DEEPEST:
        return {"type": "json"}
    [kind] = kinds
    if kind == "array":
        return {"type": "array", "items": _item(key, seen.items or Seen(), level)}
    if kind == "object":
        return _object(key, seen, level)
    if kind == "text":
        return {"type": _text_type(seen.values)}
    return _number_type(key, seen.values) if kind == "number" else {"type": kind}


def _item(key: str, seen: Seen, level: int) -> Typed:
    typed = _typed(key, seen, 0, level + 1)
    del typed["key"]
    return typed


def _object(key: str, seen: Seen, level: int) -> Typed:
    objects, names = seen.kinds["object"], list(seen.fields)
    rare = sum(one.kinds.total() * 2 <= objects for one in seen.fields.values())
    if not names or (len(names) > MAP_KEYS and rare * 2 > len(names)):
        every = Seen().merged(seen.fields.values())
        return {"type": "map", "values": _item(key, every, level)}
    if len({name.lower() for name in names}) < len(names) or not all(map(_is_usable, names)):
        return {"type": "json"}
    taken: set[str] = set()
    fields = {}
    for name, one in seen.fields.items():
        column = _column(name, taken)
        fields[column] = _typed(name, one, objects, level + 1)
        if column == name:
            del fields[column]["key"]
    return {"type": "object", "fields": fields}


def _text_type(texts: set[str]) -> str:
    for kind, pattern in (
        ("date", _DATE),
        ("timestamp", _INSTANT),
        ("local timestamp", _CLOCK),
    ):
        if all(pattern.fullmatch(text) and _is_time(text) for text in texts):
            return kind
    return "text"


def _is_time(text: str) -> bool:
    """Say whether a text is a time that is in no zone beyond the years that there are."""
    try:
        return 1 < dt.datetime.fromisoformat(text).year < dt.MAXYEAR
    except ValueError:
        return False


def _number_type(key: str, numbers: set[Any]) -> Typed:
    if not all(math.isfinite(_double(number)) for number in numbers):
        return {"type": "json"}
    if any(isinstance(number, Decimal) for number in numbers):
        return {"type": "number"}
    if not all(-(2**63) <= number < 2**63 for number in numbers):
        is_short = all(abs(number) < 10**38 for number in numbers)
        return {"type": "decimal(38,0)" if is_short else "number"}
    for unit, per_second in _UNITS.items():
        first, last = (bound * per_second for bound in _OUR_TIME)
        if _NAME_OF_TIME.search(key) and all(first <= number < last for number in numbers):
            return {"type": "timestamp", "unit": unit}
    return {"type": "integer"}


def _double(number: Decimal | int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def event_time(fields: Mapping[str, Typed]) -> str:
    """Return the column that looks most like the time of an event; that of Kafka if none does."""
    times = [
        name
        for name, one in fields.items()
        if one["type"] == "timestamp" and not ({"nullable", "optional"} & one.keys())
    ]
    likely = [name for name in times if re.search("event|occur|creat", name, re.IGNORECASE)]
    return (likely or times or ["timestamp"])[0]
