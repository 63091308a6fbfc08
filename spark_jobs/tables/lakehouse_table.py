"""A table: batches in, each exactly once, rows out, whatever format it has.

    table.append(rows, Commit("flights/17c4…", 12, {"taken": …}))    -> True; again -> False
    table.merge(windows, Merge(("start", "origin"), sums=("flights",)), Commit(query_id, 12))

A commit is known by its writer and number, as a stream's batches are by the query and theirs: one
whose number its writer has reached already changes nothing. Batches that are added up need this;
for what only replaces it saves the work.

Writers of a directory take turns, by a lock beside it that the system lets go of when one dies: on
a local disk neither format can see that another process commits at the same moment. Readers wait
for nobody and see each commit whole.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.locks import locked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NO_COMMIT = -1
PROPERTY = "spark_jobs."
"""Prefix of a table's properties that are the jobs' own."""

_BATCH = "spark_jobs_batch"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table is made as."""

    columns: Mapping[str, str]
    """Types in SQL, by name."""

    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    """What a job wants to remember of the table, for its whole life."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch, so that it is recognized when it comes again."""

    writer: str
    """An id that numbers its batches; a streaming query's, for example."""

    number: int
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Kept in the table's history, as JSON."""


@dataclass(frozen=True, slots=True)
class Merge:
    """How rows of a batch meet rows of the table; in a batch, a key may be there once."""

    key: tuple[str, ...]
    sums: tuple[str, ...] = ()
    """Columns that are added up; all others are replaced."""

    instant: str | None = None
    """Column of the key, a timestamp: files without those of the batch are left alone."""

    has_new_keys: bool = False
    """Whether no key comes twice, so that rows may be appended."""


@dataclass(frozen=True, slots=True)
class Change:
    """One version in a table's history."""

    version: int
    operation: str
    """In the format's own words."""

    is_ours: bool
    """Whether it is a commit of the port, or leaves all rows as they are."""

    notes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Optimized:
    """What a compaction came to."""

    files_before: int
    files_after: int


class LakehouseTable(ABC):
    """A table in a directory that the driver and all executors reach by the same path."""

    format: ClassVar[str]
    settings: ClassVar[Mapping[str, str]]
    """Properties that all tables of the format are made with."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.directory = directory.absolute()

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's name in SQL."""

    @abstractmethod
    def last_number(self, writer: str) -> int:
        """Return the highest number that a writer has committed, or `NO_COMMIT`."""

    @abstractmethod
    def history(self) -> list[Change]:
        """Return what happened to the table, latest first, as far as its history goes back."""

    @abstractmethod
    def optimize(self, file_bytes: int) -> Optimized:
        """Make large files of small ones; writers wait meanwhile, readers do not."""

    @abstractmethod
    def vacuum(self, hours: int) -> None:
        """Delete files that no version of the last hours needs; older versions cannot be read."""

    @abstractmethod
    def _commit_settings(self, commit: Commit) -> dict[str, str]:
        """Return settings of a session in which one statement is this commit."""

    @abstractmethod
    def _create(self, shape: Shape, properties: Mapping[str, str]) -> None:
        """Make the table, with these properties, unless it is there."""

    def create(self, shape: Shape) -> None:
        """Make the table unless it is there."""
        properties = dict(self.settings) | {PROPERTY + k: v for k, v in shape.properties.items()}
        with self.writing():
            self._create(shape, properties)

    def columns(self) -> dict[str, str]:
        """Return the columns and their types in SQL."""
        return {column.name: column.dataType.simpleString() for column in self.read().schema}

    def properties(self) -> dict[str, str]:
        """Return the properties of `Shape`."""
        rows = self.run(f"SHOW TBLPROPERTIES {self.name}").collect()
        return {k.removeprefix(PROPERTY): v for k, v in rows if k.startswith(PROPERTY)}

    def add_columns(self, columns: Mapping[str, str]) -> None:
        """Add columns, which are NULL in all rows there are."""
        if columns:
            added = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
            with self.writing():
                self.run(f"ALTER TABLE {self.name} ADD COLUMNS ({added})")

    def read(self, version: int | None = None) -> DataFrame:
        """Return the rows as they are now, or were in a version of the history."""
        of = "" if version is None else f" VERSION AS OF {version}"
        return self.run(f"SELECT * FROM {self.name}{of}")

    def append(self, rows: DataFrame, commit: Commit) -> bool:
        """Add rows; return False if this was done already."""
        names = ", ".join(f"`{name}`" for name in rows.columns)
        return self._write(
            rows, commit, f"INSERT INTO {self.name} ({names}) SELECT {names} FROM {_BATCH}"
        )

    def merge(self, rows: DataFrame, how: Merge, commit: Commit) -> bool:
        """Merge rows by their key, and add those with a new key; return False if it was done."""
        same = _same_key(rows, how)
        values = {name: f"new.`{name}`" for name in rows.columns}
        sums = {name: f"old.`{name}` + new.`{name}`" for name in how.sums}
        changed = {name: sql for name, sql in (values | sums).items() if name not in how.key}
        assignments = ", ".join(f"old.`{name}` = {sql}" for name, sql in changed.items())
        names = ", ".join(f"`{name}`" for name in values)
        return self._write(
            rows,
            commit,
            f"MERGE INTO {self.name} AS old USING {_BATCH} AS new ON {same} "
            f"WHEN MATCHED THEN UPDATE SET {assignments} "
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({', '.join(values.values())})",
        )

    def matching(self, rows: DataFrame, how: Merge) -> DataFrame:
        """Return the table's rows that have a key of `rows`."""
        table = self.within(rows.sparkSession).read().alias("old")
        return table.join(rows.alias("new"), F.expr(_same_key(rows, how)), "left_semi")

    def newest_notes(self) -> Mapping[str, Any]:
        """Return the notes of the latest commit that has some, as far as the history goes back."""
        return next((change.notes for change in self.history() if change.notes), {})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold off other writers; this one may enter again in the same thread of work."""
        if self._is_held:
            yield
            return
        # Beside the directory: Delta makes no table in one that holds anything.
        with locked(self.directory.with_name(f".{self.directory.name}.lock")):
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False

    _is_held = False

    def within(self, session: SparkSession) -> Self:
        """Return the same table for another session, as a stream has one for its batches."""
        return type(self)(session, self.directory)

    def run(self, statement: str) -> DataFrame:
        """Run a statement."""
        return self.spark.sql(statement)

    def _write(self, rows: DataFrame, commit: Commit, statement: str) -> bool:
        # A stream hands out its batches in a session of its own: views and settings belong there.
        session = rows.sparkSession
        with self.writing():
            if commit.number <= self.last_number(commit.writer):
                return False
            rows.createOrReplaceTempView(_BATCH)
            try:
                with settings(session, self._commit_settings(commit)):
                    self.within(session).run(statement)
            finally:
                session.catalog.dropTempView(_BATCH)
            return True


def _same_key(rows: DataFrame, how: Merge) -> str:
    """Return the condition under which a row, `old`, has the key of a batch's, `new`."""
    same = [f"old.`{name}` <=> new.`{name}`" for name in how.key]
    if how.instant is not None:
        range_sql = f"unix_micros(min(`{how.instant}`)), unix_micros(max(`{how.instant}`))"
        first, last = rows.selectExpr(*range_sql.split(", ")).collect()[0]
        if first is not None:
            bounds = f"timestamp_micros({first}) AND timestamp_micros({last})"
            same.append(f"old.`{how.instant}` BETWEEN {bounds}")
    return " AND ".join(same)


@contextmanager
def settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for a while."""
    kept = {name: session.conf.get(name, None) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, before in kept.items():
            if before is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, before)


def java_side(session: SparkSession) -> tuple[Any, Any]:
    """Return Spark's JVM and the session in it, for what SQL has no word for."""
    return session.sparkContext._jvm, session._jsparkSession  # noqa: SLF001 - there is no other way


def java_strings(session: SparkSession, words: Sequence[str]) -> Any:  # noqa: ANN401 - Java's
    """Return words as an array of Java's."""
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - there is no other way
    array = gateway.new_array(gateway.jvm.java.lang.String, len(words))
    for number, word in enumerate(words):
        array[number] = word
    return array


def commit_of(text: str | None) -> Mapping[str, Any]:
    """Return what `commit_text` made, or nothing if it is another's text."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "writer" in found else {}


def commit_text(commit: Commit) -> str:
    """Return a commit as it stands in a table's history."""
    return json.dumps({"writer": commit.writer, "number": commit.number, "notes": commit.notes})
