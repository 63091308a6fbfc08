"""The fields of a record: types to any depth, and the rules that a value must keep.

    size = { type = "integer", low = 0, high = 1000, nullable = true }
    total = { type = "decimal(12,2)", low = 0 }
    ordered = { type = "timestamp" }                   2013-03-01T10:00:00-05:00
    seen = { type = "timestamp", unit = "milliseconds" }
    tags = { type = "array", items = { type = "text", pattern = "[a-z]+" } }
    prices = { type = "map", values = { type = "number" } }
    [record.fields.address]
    type = "object"
    fields.city = { type = "text" }
    fields.zip_code = { type = "text", key = "zip-code", optional = true }

`TYPES` lists the types. `field_sql` says what Spark makes of them.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
import zoneinfo
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    WithJsonSchema,
    model_validator,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TYPES = {
    "integer": "a whole number of 64 bits",
    "number": "a number, as a double",
    "decimal(P,S)": "an exact number of at most P digits, S of them after the point: money",
    "text": "a text",
    "boolean": "`true` or `false`",
    "date": "a text `2013-03-01`, or a number with `unit`",
    "timestamp": "an instant: ISO 8601 with an offset, a text in `zone`, or a number with `unit`",
    "local timestamp": "date and time of a clock in no zone: ISO 8601 without an offset",
    "binary": "bytes, as base64",
    "json": "any JSON value, kept as text",
    "array": "an array of `items`",
    "map": "an object with any keys, all of whose values are `values`",
    "object": "an object with `fields`",
}
"""Types of a field, and what its value is in JSON."""

OTHER_NAMES = {
    **dict.fromkeys(("int", "long", "bigint", "short"), "integer"),
    **dict.fromkeys(("float", "double", "real"), "number"),
    **dict.fromkeys(("money", "numeric", "decimal"), "decimal(P,S)"),
    **dict.fromkeys(("string", "str", "varchar", "enum", "uuid"), "text"),
    **dict.fromkeys(("bool", "bit"), "boolean"),
    **dict.fromkeys(("datetime", "time", "instant"), "timestamp"),
    **dict.fromkeys(("bytes", "blob", "base64"), "binary"),
    **dict.fromkeys(("list", "sequence"), "array"),
    **dict.fromkeys(("struct", "record", "dict", "table"), "object"),
    **dict.fromkeys(("any", "variant"), "json"),
    **dict.fromkeys(("min", "minimum", "least"), "low"),
    **dict.fromkeys(("max", "maximum", "most"), "high"),
    **dict.fromkeys(("enum_values", "choices", "allowed"), "one_of"),
    **dict.fromkeys(("null", "nullability"), "nullable"),
    **dict.fromkeys(("name", "json_key"), "key"),
    "regex": "pattern",
    "required": "optional",
    "element": "items",
    "properties": "fields",
}
"""What people call types and keys elsewhere, by what they are called here."""

DEEPEST = 30
"""Levels of arrays, maps and objects: Spark needs seconds to plan deeper ones."""

NEAR = 0.7
"""How like one another two words are of which one is taken for the other, misspelt."""

UNITS = {"days": 86_400, "seconds": 1, "milliseconds": 1e-3, "microseconds": 1e-6}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REASON = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
MOST_DIGITS = 38


def near(word: str, words: Iterable[str]) -> str:
    """Return `, did you mean 'WORD'?` for the word that was meant, if one is near; else nothing."""
    words = list(words)
    meant = OTHER_NAMES.get(word.lower())
    found = [meant] if meant in words else difflib.get_close_matches(word, words, 1, NEAR)
    return f", did you mean '{found[0]}'?" if found else ""


def _column_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("expected letters, digits and '_', a letter first")
    return text


def _reason(text: str) -> str:
    if not _REASON.fullmatch(text):
        raise ValueError("expected small letters and digits with '-' between words")
    return text


ColumnName = Annotated[str, AfterValidator(_column_name)]
Reason = Annotated[str, AfterValidator(_reason)]


class Section(BaseModel):
    """A table of a definition file: unknown keys are errors, none changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _type_name(text: str) -> str:
    text = text.replace(" ", "") if text.startswith("decimal") else text
    found = _DECIMAL.fullmatch(text)
    if found is not None:
        digits, scale = int(found[1]), int(found[2])
        if not 1 <= digits <= MOST_DIGITS or scale > digits:
            raise ValueError(f"a decimal has 1 to {MOST_DIGITS} digits, all or fewer of its scale")
    elif text not in TYPES or text == "decimal(P,S)":
        raise ValueError(f"unknown type{near(text, TYPES) or '; known are ' + ', '.join(TYPES)}")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


def _zone(text: str) -> str:
    try:
        zoneinfo.ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("unknown time zone; expected one as 'America/New_York'") from error
    return text


def _key(text: str) -> str:
    if not text or ("'" in text and '"' in text):
        raise ValueError("a key is not empty, and does not have quotes of both kinds")
    return text


def _plain(value: Any) -> Any:  # noqa: ANN401 - pydantic checks it next
    if isinstance(value, bool) or not isinstance(value, int | float | dt.date):
        raise ValueError("expected a number, a date or a time")  # noqa: TRY004 - for pydantic
    return value


_NAMES = [name for name in TYPES if name != "decimal(P,S)"]
TypeName = Annotated[
    str,
    AfterValidator(_type_name),
    WithJsonSchema({"anyOf": [{"enum": _NAMES}, {"type": "string", "pattern": _DECIMAL.pattern}]}),
]
Pattern = Annotated[str, AfterValidator(_pattern)]
Zone = Annotated[str, AfterValidator(_zone)]
Bound = Annotated[int | float | dt.datetime | dt.date, BeforeValidator(_plain)]

NUMBERS, TIMES = ("integer", "number", "decimal"), ("date", "timestamp", "local timestamp")
_OF_TYPES: Mapping[str, tuple[str, ...]] = {
    "low": (*NUMBERS, *TIMES),
    "high": (*NUMBERS, *TIMES),
    "pattern": ("text",),
    "one_of": ("text", *NUMBERS),
    "items": ("array",),
    "values": ("map",),
    "fields": ("object",),
    "unknown_keys": ("object",),
    "unit": ("date", "timestamp"),
    "zone": ("timestamp",),
    "encoding": ("decimal",),
}
"""Keys that only fields of some types have."""


class Field(Section):
    """One key of a record or of an object in it, an item of an array, or a value of a map."""

    type: TypeName
    """one of the types below"""

    key: Annotated[str, AfterValidator(_key)] | None = None
    """the key in JSON, where that is no name of a column"""

    nullable: bool = False
    """the value may be null"""

    optional: bool = False
    """the key may be absent, which is NULL: what later versions of a record add"""

    low: Bound | None = None
    """least possible value"""

    high: Bound | None = None
    """greatest possible value"""

    pattern: Pattern | None = None
    """regular expression of Java that the whole text matches"""

    one_of: tuple[int | float | str, ...] | None = None
    """all possible values"""

    out_of_range: Reason | None = None
    """reason to reject a record that breaks one of these four rules; by type when not given:
    `impossible-number`, `impossible-time` or `impossible-text`"""

    unit: Literal["days", "seconds", "milliseconds", "microseconds"] | None = None
    """what a number counts, from 1970 on"""

    zone: Zone | None = None
    """time zone of a timestamp's text, which then has no offset"""

    encoding: Literal["number", "text", "bytes"] | None = None
    """how a decimal is written: as a number (when not given), as a text, or, as Kafka Connect
    does, as the base64 of the bytes of the number without its point"""

    items: Field | None = None
    """what each item of an array is"""

    values: Field | None = None
    """what each value of a map is"""

    fields: dict[ColumnName, Field] | None = None
    """the keys of an object"""

    unknown_keys: Literal["reject", "ignore"] | None = None
    """what becomes of a record whose object has other keys; as in [record] when not given"""

    @model_validator(mode="after")
    def _has_keys_of_its_type(self) -> Self:
        for name, types in _OF_TYPES.items():
            if getattr(self, name) is not None and self.kind not in types:
                raise ValueError(f"'{name}' is not for {self.type}, but for {', '.join(types)}")
        for name in ("items", "values", "fields"):
            if self.kind in _OF_TYPES[name] and getattr(self, name) is None:
                raise ValueError(f"the {self.kind} lacks '{name}'")
        if self.depth() > DEEPEST:
            raise ValueError(f"more than {DEEPEST} levels of arrays, maps and objects")
        self._check_values()
        require_distinct_keys(self.fields or {})
        return self

    def _check_values(self) -> None:
        if (self.unit == "days") != (self.kind == "date") and self.unit is not None:
            raise ValueError("a date counts days, and a timestamp none")
        if self.zone is not None and self.unit is not None:
            raise ValueError("a number since 1970 has no zone")
        for bound in (self.low, self.high):
            is_time = isinstance(bound, dt.date)
            if bound is not None and is_time != (self.kind in TIMES):
                raise ValueError(f"'{bound}' does not bound a {self.type}")
            if self.kind == "timestamp" and getattr(bound, "tzinfo", None) is None and is_time:
                raise ValueError(f"'{bound}' lacks an offset, as 2013-03-01T10:00:00Z")
        if self.low is not None and self.high is not None and self.low > self.high:  # type: ignore[operator]
            raise ValueError("nothing lies between 'low' and 'high'")
        texts = {isinstance(value, str) for value in self.one_of or ()}
        if self.one_of is not None and texts != {self.kind == "text"}:
            raise ValueError(f"'one_of' lists values of type {self.type}")

    @property
    def kind(self) -> str:
        """The type, without the digits of a decimal."""
        return self.type.partition("(")[0]

    @property
    def scale(self) -> int:
        """Digits of a decimal after its point."""
        found = _DECIMAL.fullmatch(self.type)
        return int(found[2]) if found else 0

    @property
    def may_be_null(self) -> bool:
        """Whether null is no reason to reject: it is one of the values of type `json`."""
        return self.nullable or self.kind == "json"

    def inner(self) -> Iterable[Field]:
        """Return the fields right inside this one."""
        return [*(self.fields or {}).values(), *(f for f in (self.items, self.values) if f)]

    def kinds(self) -> set[str]:
        """Return the kinds of this field and of all inside; a local timestamp is a timestamp."""
        own = "timestamp" if self.kind == "local timestamp" else self.kind
        return {own}.union(*(field.kinds() for field in self.inner()))

    def depth(self) -> int:
        """Return how many levels there are, itself included."""
        return 1 + max((field.depth() for field in self.inner()), default=0)


def key_of(name: str, field: Field) -> str:
    """Return the key of a column's field in JSON."""
    return field.key or name


def require_distinct_keys(fields: Mapping[str, Field]) -> None:
    """Raise ValueError when two fields have keys or names that differ in capitals only."""
    for names in (list(fields), [key_of(*pair) for pair in fields.items()]):
        lower = [name.lower() for name in names]
        twice = next((name for name in lower if lower.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"there are two keys '{twice}'; capitals do not tell them apart")
