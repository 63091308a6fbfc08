"""What a topic's records are, read from a TOML file: fields, names, event time, rules.

    [parameters]                       texts and numbers that ${name} stands for in the rest;
    delayed_from_minutes = 15          --set delayed_from_minutes=30 changes one

    [record]
    event_time = "to_timestamp(at)"    SQL; NULL makes the record a reject of `impossible-time`
    latest = "1 hour"                  event times further ahead of the clock are `clock-skew`
    [record.fields]
    at = { type = "text" }             each key of the JSON object, and what its value must be: see
    size = { type = "integer" }        `fields`
    [record.columns]
    kilobytes = "size / 1024"          SQL; each may use what stands above it

    format = "csv"                     or an envelope around JSON: see `record_formats`

    [[record.tables]]                  a small table: code -> name, sent to every executor
    [[record.rules]]                   further reasons to reject a record, in order

SQL must give NULL for what makes no sense, not fail: an expression that fails for a record ends the
job. So `try_to_timestamp`, `try_add` and their like; ordinary arithmetic and casts give NULL here.

Other sections belong to the jobs that read them. `--definition` takes a file, or the name of one
beside this module: `flights`, for instance. An error names the file and the key.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

import pydantic
from pydantic import (
    BaseModel,
    PositiveInt,
    ValidationError,
    model_validator,
)

from spark_jobs.definitions.avro_format import AVRO, with_schema
from spark_jobs.definitions.fields import (
    ColumnName,
    Field,
    Reason,
    Section,
    key_of,
    near,
    require_distinct_keys,
)
from spark_jobs.definitions.mistakes import mistakes
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_jobs.avro.avro_values import AvroValues
    from spark_jobs.definitions.avro_format import SchemaSource

BUILT_IN = Path(__file__).resolve().parent
SECTIONS = (
    "parameters",
    "record",
    "route",
    "aggregate",
    "enrich",
    "activity",
    "retry",
    "report",
    "logs",
)
"""Tables that a file may have; each job reads `record` and its own."""

OWN_COLUMNS = (
    *("key", "value", "topic", "partition", "offset", "timestamp", "timestamptype", "headers"),
    *("text", "document", "undecodable", "is_typed", "record_fields", "event_time", "rejection"),
    *("record_envelope", "record_change", "record_place", "row_document"),
    *("route", "output", "output_key", "lookup_key"),
)
"""Columns of the jobs, which a record cannot have; Spark does not tell capitals from small."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"\$\{(\w+)\}")

SectionT = TypeVar("SectionT", bound=BaseModel)


class Rule(Section):
    """A reason to reject a record."""

    reason: Reason
    """Short and stable: what consumers of the rejects count and select by."""

    when: str
    """SQL condition; NULL counts as false."""

    detail: str
    """SQL expression for a person: which key, which value."""


class Table(Section):
    """A small table that gives a column's codes their names."""

    column: ColumnName
    """the column to look up"""

    adds: ColumnName
    """the column that is made; NULL when the code is not in the table"""

    file: str
    """a CSV file with a header, beside the definition; or PACKAGE:PATH in a Python package"""

    key: str
    """column of that file to find the row by"""

    value: str
    """column of that file that `adds` is made of"""

    extra: dict[str, str] = pydantic.Field(default={})
    """rows that the file lacks"""


class Record(Section):
    """What one record is."""

    event_time: str = "timestamp"
    """SQL of the instant that windows and archives go by; NULL makes the record a reject of
    `impossible-time`"""

    fields: dict[ColumnName, Field] = pydantic.Field(default={})
    """the keys of a record; of Avro, those of its schema when none is given"""

    format: Literal["json", "csv", "avro"] = "json"
    """how a value is written; Avro has its schema in a registry"""

    subject: str | None = None
    """the subject of a schema of Avro; TOPIC-value when not given"""

    header: tuple[str, ...] | None = None
    """columns of CSV, in order; the keys of the fields when not given"""

    delimiter: Annotated[str, pydantic.Field(min_length=1, max_length=1)] = ","
    """what stands between columns of CSV"""

    envelope: Literal["debezium"] | None = None
    """what is around the fields: `debezium` for changes of a database's rows"""

    key: tuple[ColumnName, ...] = ()
    """fields that tell rows of a database apart, for an envelope"""

    columns: dict[ColumnName, str] = pydantic.Field(default={})
    """SQL of further columns; each may use what stands above it"""

    tables: tuple[Table, ...] = ()
    """small tables that give codes their names, sent to every executor"""

    rules: tuple[Rule, ...] = ()
    """further reasons to reject a record, in order"""

    latest: str | None = None
    """how far ahead of the clock an event time may be, as `1 hour`; no limit when not given"""

    max_bytes: PositiveInt = 1_000_000
    """longer values are rejected as `too-large`"""

    unknown_keys: Literal["reject", "ignore"] = "reject"
    """what becomes of a record with a key that is none of the fields"""

    @model_validator(mode="after")
    def _has_distinct_columns(self) -> Self:
        if self.format != "avro" and not self.fields:
            raise ValueError("'fields' is missing: the keys of a record")
        taken = set(OWN_COLUMNS)
        for name in (
            *self.fields,
            *self.envelope_columns(),
            *self.columns,
            *(table.adds for table in self.tables),
        ):
            if name.lower() in taken:
                raise ValueError(f"there are two columns '{name.lower()}'")
            taken.add(name.lower())
        require_distinct_keys(self.fields)
        self._require_format()
        return self

    def _require_format(self) -> None:
        keys = [key_of(*pair) for pair in self.fields.items() if not pair[1].optional]
        lacking = sorted(set(keys) - set(self.csv_header()))
        deep = [name for name, field in self.fields.items() if field.inner()]
        if self.format == "csv" and (lacking or deep or self.envelope):
            raise ValueError(
                f"the header lacks '{lacking[0]}'"
                if lacking
                else "CSV has neither an envelope nor arrays, maps or objects"
            )
        if self.header is not None and self.format != "csv":
            raise ValueError("only CSV has a header")
        unknown = [name for name in self.key if name not in self.fields]
        if unknown or bool(self.key) != bool(self.envelope):
            raise ValueError(
                f"key: there is no field '{unknown[0]}'{near(unknown[0], self.fields)}"
                if unknown
                else "an envelope has 'key', the fields that tell rows apart; nothing else has"
            )

    def csv_header(self) -> tuple[str, ...]:
        """Return the columns of CSV."""
        return self.header or tuple(key_of(*pair) for pair in self.fields.items())

    def envelope_columns(self) -> dict[str, str]:
        """Return the columns that come from the envelope, and their types in SQL."""
        return dict(ENVELOPE_COLUMNS) if self.envelope else {}


ENVELOPE_COLUMNS = {
    "op": "string",
    "changed_at": "timestamp",
    "before": "string",
    "change_source": "string",
}


class Definition:
    """A definition file, read and checked; its sections are asked for by the jobs."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self.path = path
        self._content = content
        self.values: AvroValues | None = None
        """How values are read that are not JSON."""

        self.record = self.section("record", Record)

    def has(self, name: str) -> bool:
        """Say whether the file has that table."""
        return name in self._content

    def section(self, name: str, model: type[SectionT]) -> SectionT:
        """Return a table as `model`; raise `BadOptionError` when it is missing or wrong."""
        if name not in self._content:
            raise BadOptionError(f"--definition: {self.path} has no [{name}]")
        try:
            return model.model_validate(self._content[name])
        except ValidationError as error:
            first = mistakes(error, model, (name,))[0]
            raise BadOptionError(f"--definition: {self.path}: {first}") from error


def load_definition(
    name: str,
    parameters: Mapping[str, str] | None = None,
    schemas: SchemaSource | None = None,
) -> Definition:
    """Read a file, or the built-in definition of that name, with parameters put in.

    `schemas` is where the schema is of records that have one in a registry.
    """
    path = BUILT_IN / f"{name}.toml" if _NAME.fullmatch(name) else Path(name)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        built_in = ", ".join(sorted(file.stem for file in BUILT_IN.glob("*.toml")))
        raise BadOptionError(
            f"--definition: there is no file {path}; built in are: {built_in}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadOptionError(f"--definition: {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise BadOptionError(f"--definition: {path}: not TOML: {error}") from error
    unknown = sorted(set(content) - set(SECTIONS))
    if unknown:
        raise BadOptionError(f"--definition: {path}: {unknown_section(unknown[0])}")
    filled = _filled_in(path, content, parameters or {})
    record = filled.get("record")
    values = None
    if isinstance(record, dict) and record.get("format") == AVRO:
        values = with_schema(path, record, schemas)
    definition = Definition(path, filled)
    definition.values = values
    return definition


def unknown_section(name: str) -> str:
    """Return the words for a table that no job reads."""
    return f"[{name}] is unknown{near(name, SECTIONS) or '; known are ' + ', '.join(SECTIONS)}"


def _filled_in(
    path: Path, content: dict[str, Any], changed: Mapping[str, str]
) -> Mapping[str, Any]:
    values = {name: str(value) for name, value in content.pop("parameters", {}).items()}
    unknown = sorted(set(changed) - set(values))
    if unknown:
        raise BadOptionError(
            f"--set {unknown[0]}: {path} has no such parameter; it has: {', '.join(values)}"
        )
    values |= changed

    def fill(value: Any) -> Any:  # noqa: ANN401 - whatever TOML holds
        if isinstance(value, str):
            return _PARAMETER.sub(put, value)
        if isinstance(value, list):
            return [fill(item) for item in value]
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        return value

    def put(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise BadOptionError(f"--definition: {path}: ${{{match[1]}}} is not in [parameters]")
        return values[match[1]]

    filled: Mapping[str, Any] = fill(content)
    return filled
