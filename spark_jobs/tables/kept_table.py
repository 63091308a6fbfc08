"""A table that a query, or backfills, keep: each batch is in it once.

Whose it is stands in the property `keeper`: the id that Spark gave the query's checkpoint, or
`backfill`. When the two do not belong together, because one of them was deleted or is another's,
the job says so before it reads anything: what was counted would be missing, or there twice.

The first batch makes the table, of the columns that its rows have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_jobs.errors import BadOptionError
from spark_jobs.paths import require_directory
from spark_jobs.tables.lakehouse_table import Commit, Shape
from spark_jobs.tables.open_tables import format_of, open_or_create, open_table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.tables.lakehouse_table import LakehouseTable, Merge
    from spark_jobs.tables.table_format import TableFormat

FLAG = "--table"
KEEPER = "keeper"
BACKFILL = "backfill"
OF_BEFORE = "table.json"
"""A file of tables that earlier versions kept as lines of JSON."""


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table, how batches meet its rows, and the checkpoint of the query that keeps it."""

    directory: Path
    format: TableFormat
    how: Merge
    checkpoint: Path | None
    """None for backfills, whose rows replace others."""

    def require_keeper(self, spark: SparkSession) -> None:
        """Raise `BadOptionError` if the table is not what this keeper has made of it."""
        require_directory(FLAG, self.directory.parent)
        if (self.directory / OF_BEFORE).exists():
            raise BadOptionError(
                f"{FLAG}: {self.directory} is a table of an earlier version, lines of JSON: name "
                "another directory and another --checkpoint, to count again"
            )
        if format_of(self.directory) is not None:
            found = open_table(spark, FLAG, self.directory).properties().get(KEEPER)
            if found != self._keeper():
                raise BadOptionError(
                    f"{FLAG}: {self.directory} was made from another checkpoint, or by a "
                    "backfill: name another directory, or delete it"
                )
        elif self.checkpoint is not None and any((self.checkpoint / "commits").glob("[0-9]*")):
            raise BadOptionError(
                f"{FLAG}: {self.directory} lacks what the checkpoint has counted already: name "
                "the directory used before, or another --checkpoint"
            )

    def take(self, rows: DataFrame, batch: int) -> LakehouseTable:
        """Merge the rows of a batch into the table, once; return it.

        Raises `BadOptionError` as `require_keeper` does.
        """
        keeper = self._keeper()
        assert keeper is not None, "Spark writes it before the first batch"
        if format_of(self.directory) is None:  # before the first batch, or deleted since
            self.require_keeper(rows.sparkSession)
        columns = {field.name: field.dataType.simpleString() for field in rows.schema}
        shape = Shape(columns, properties={KEEPER: keeper})
        session = rows.sparkSession
        table = open_or_create(session, FLAG, self.directory, self.format, shape)
        if self.checkpoint is None:
            with table.writing():
                number = table.last_number(keeper) + 1
                table.merge(rows, replace(self.how, sums=()), Commit(keeper, number))
        elif self.how.has_new_keys:
            table.append(rows, Commit(keeper, batch))
        else:
            table.merge(rows, self.how, Commit(keeper, batch))
        return table

    def _keeper(self) -> str | None:
        """Return the query's id, or None for a query that has not begun."""
        if self.checkpoint is None:
            return BACKFILL
        path = self.checkpoint / "metadata"
        try:
            found: str = json.loads(path.read_text(encoding="utf-8"))["id"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise BadOptionError(f"--checkpoint: {path} is damaged: {error}") from error
        return found
