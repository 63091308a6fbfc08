r"""Which format a line of a log has, and what is in it: the section [logs] of a definition.

    [[logs.formats]]                    in order: the first that matches is the line's
    name = "access"                     several may have one name
    pattern = '^(?<client>[^ ]+) ...'   a regular expression of Java, with named groups only
    files = 'access\.log$'              and another for the log's path; any when not given
    none = ["-"]                        texts that stand for nothing
    time = "try_to_timestamp(stamp)"    SQL; when the line was written, NULL if it does not say
    level = "CASE WHEN status >= 500 THEN 'error' END"
    columns.action = "lower(step)"      SQL; more fields

A group's name is a column, of the type that [record.fields] has for it, else text; SQL may use
all groups of its format, `line`, and the columns of Spark's Kafka source. What the fields of the
definition are is what goes on; other groups are for use in SQL.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.field_sql import column_type
from spark_jobs.definitions.fields import ColumnName, Reason, Section
from spark_jobs.definitions.typed_records import require_sql
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from spark_jobs.definitions.definition import Definition

MADE = ("log", "format", "collected", "time", "level")
"""Fields that come from elsewhere than groups and `columns`."""

TAKEN = {
    *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"),
    *("text", "line", "entry", "log", "format", "collected", "event_time", "rejection", "output"),
    "output_key",
}
"""Names that no group or column may have: they are the source's columns, or made here."""

UNKNOWN_FORMAT, EMPTY = "unknown-format", "empty"
_GROUP = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9_]*)>")


class Format(Section):
    """What lines look like, and what they say."""

    name: Reason
    """what lines of it are called; several formats may have one name"""

    pattern: str
    """regular expression of Java with named groups, which are the fields"""

    files: str | None = None
    """regular expression for the log's path; any when not given"""

    none: tuple[str, ...] = ()
    """texts of groups that stand for nothing"""

    time: str | None = None
    """SQL of when the line was written; NULL if it does not say"""

    level: str | None = None
    """SQL of the line's level"""

    columns: dict[ColumnName, str] = Field(default={})
    """SQL of further fields"""

    @property
    def groups(self) -> list[str]:
        """Names of the pattern's groups, in order."""
        return _GROUP.findall(self.pattern)

    @property
    def sql(self) -> dict[str, str]:
        """SQL of all columns that are made, `time` and `level` among them."""
        given = {"time": self.time, "level": self.level}
        return self.columns | {name: sql for name, sql in given.items() if sql is not None}

    @model_validator(mode="after")
    def _pattern_is_one(self) -> Self:
        for pattern in (self.pattern, self.files or ""):
            try:
                # Java's \x{..} and (?<name> are Python's \u.... and (?P<name>.
                found = re.compile(_GROUP.sub(r"(?P<\1>", re.sub(r"\\x\{\w+\}", ".", pattern)))
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from error
            if found.groups != len(found.groupindex):
                raise ValueError("a group without a name: write (?:...) or (?<name>...)")
        taken = sorted(TAKEN & {*self.groups, *self.columns})
        if taken:
            raise ValueError(f"no group or column may be called '{taken[0]}'")
        return self


class LogSection(Section):
    """The section [logs]."""

    formats: Annotated[tuple[Format, ...], Field(min_length=1)]
    """in order: the first that matches is the line's"""


def parsed_lines(records: DataFrame, definition: Definition) -> DataFrame:
    """Add to each collected line its fields, `event_time`, `output` and `rejection`.

    `event_time` is the line's own time and NULL when it has none, `output` what goes on of it as
    JSON. Raises `BadOptionError` that names the expression of the definition which Spark refuses.
    """
    formats = definition.section("logs", LogSection).formats
    _require_fields(definition, formats)
    rows = records.withColumns(
        {"text": F.col("value").cast("string"), "log": F.col("key").cast("string")}
    )
    rows = rows.withColumn("line", F.expr(_LINE)).withColumn("entry", _first_that_matches(formats))
    rows = _made_once(rows, ["line", "entry"])
    groups = list(dict.fromkeys(group for found in formats for group in found.groups))
    rows = rows.withColumns({name: _group(name, formats, definition) for name in groups})
    try:
        rows = rows.withColumns(_made(rows, formats, definition))
    except PySparkException:
        _require_all(rows, formats, definition)
        raise
    rows = _made_once(rows, [name for name in ("time", "level") if name in rows.columns])
    latest = definition.record.latest or "1000 days"
    rows = rows.withColumns(
        {
            "event_time": F.expr(_not_later_than(latest)),
            "format": _case([(i, F.lit(found.name)) for i, found in enumerate(formats)]),
            "rejection": F.expr(_REJECTION),
            "output_key": F.col("key"),
        }
    )
    return rows.withColumn("output", F.expr(_json_sql(definition)))


def _made_once(rows: DataFrame, names: list[str]) -> DataFrame:
    """Keep Spark from putting the columns' expressions in the place of each mention of them.

    Each stands for others, in which yet others stand; put into each other, as windows of `time`
    would have it, they keep Spark's planner busy for minutes. `explode` is what it does not pass.
    """
    if not names:
        return rows
    held = rows.withColumn("made_once", F.explode(F.array(F.struct(*names))))
    return held.withColumns({name: F.col(f"made_once.{name}") for name in names}).drop("made_once")


_LINE = (
    "trim(TRAILING '\\r' FROM "
    "CASE WHEN is_valid_utf8(text) THEN text ELSE decode(value, 'ISO-8859-1') END)"
)
"""Bytes that are not UTF-8 are taken for Latin-1, which every text of bytes is."""

_REJECTION = (
    f"CASE WHEN value IS NULL OR length(value) = 0 "
    f"THEN named_struct('reason', '{EMPTY}', 'detail', 'the record has no line') "
    f"WHEN entry IS NULL THEN named_struct('reason', '{UNKNOWN_FORMAT}', 'detail', log) END"
)


def _not_later_than(latest: str) -> str:
    return f"CASE WHEN cast(time AS timestamp) <= timestamp + INTERVAL {latest} THEN time END"


def _first_that_matches(formats: tuple[Format, ...]) -> Column:
    path = F.expr("substring_index(log, ':', -1)")
    entry = F.lit(None).cast("int")
    for index, found in reversed([*enumerate(formats)]):
        matches = F.col("line").rlike(_java(found.pattern))
        if found.files is not None:
            matches = path.rlike(found.files) & matches
        entry = F.when(matches, F.lit(index)).otherwise(entry)
    return entry


def _java(pattern: str) -> str:
    r"""Return the pattern as Java has it: `.` is any character, \r too, and no name has a `_`."""
    return "(?s)" + _GROUP.sub("(", pattern)


def _group(name: str, formats: tuple[Format, ...], definition: Definition) -> Column:
    choices = []
    for index, found in enumerate(formats):
        if name in found.groups:
            text = F.regexp_extract("line", _java(found.pattern), found.groups.index(name) + 1)
            choices.append((index, F.when(~text.isin("", *found.none), text)))
    field = definition.record.fields.get(name)
    column = _case(choices)
    return column if field is None else column.try_cast(column_type(field))


def _made(
    rows: DataFrame, formats: tuple[Format, ...], definition: Definition
) -> dict[str, Column]:
    """Return the columns that formats make by SQL, of which each may use groups."""
    made = {}
    names = (name for found in formats for name in found.sql)
    for name in dict.fromkeys(("time", "level", *names)):
        choices = [(i, f.sql[name]) for i, f in enumerate(formats) if name in f.sql]
        field = definition.record.fields.get(name)
        kind = "timestamp" if name == "time" or field is None else column_type(field)
        chosen = _case([(index, F.expr(sql).cast(kind)) for index, sql in choices])
        group = F.col(name) if name in rows.columns else F.lit(None)
        made[name] = F.coalesce(chosen, group.cast(kind))
    return made


def _require_all(rows: DataFrame, formats: tuple[Format, ...], definition: Definition) -> None:
    for index, found in enumerate(formats):
        for name, sql in found.sql.items():
            require_sql(rows, definition, f"logs.formats.{index}.{name}", sql)


def _case(choices: list[tuple[int, Column]]) -> Column:
    column = F.lit(None)
    for index, chosen in reversed(choices):
        column = F.when(F.col("entry") == index, chosen).otherwise(column)
    return column


def _json_sql(definition: Definition) -> str:
    times = {"time": "event_time", "collected": "timestamp"}
    pairs = ", ".join(
        f"'{name}', "
        + (f'date_format({times[name]}, "{_INSTANT}")' if name in times else f"`{name}`")
        for name in definition.record.fields
    )
    return f"to_json(named_struct({pairs}))"


_INSTANT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX"


def _require_fields(definition: Definition, formats: tuple[Format, ...]) -> None:
    groups = {name for found in formats for name in (*found.groups, *found.columns)}
    for name in definition.record.fields:
        if name not in groups and name not in MADE:
            raise BadOptionError(
                f"--definition: {definition.path}: record.fields.{name}: no format has it"
            )
