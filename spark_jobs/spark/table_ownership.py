"""Who keeps a table: the query of one checkpoint, or backfills, never both.

A query's id is the one that Spark gives its checkpoint. A table holds the id of its query; when
the two do not belong together, because one of them was deleted or is another's, the job says so
before it reads anything.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from spark_jobs.errors import BadOptionError
from spark_jobs.spark.tables import NO_VERSION, Merge, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame

BACKFILL = "backfill"


def lines_of(records: DataFrame) -> Iterator[str]:
    """Yield the column `value`, JSON as text, row by row; a partition at a time is in memory."""
    for row in records.select("value").toLocalIterator():
        yield row["value"]


class KeptTable(Protocol):
    """A table with who keeps it."""

    @property
    def table(self) -> Table:
        """What it holds."""

    def commit(self, batch: int, lines: Iterable[str]) -> None:
        """Merge rows, each as JSON, into the table, once for a batch of a stream."""


class StreamTable:
    """A table and the checkpoint of the query that keeps it; its versions are batches."""

    def __init__(self, table: Table, checkpoint: Path) -> None:
        """Raise `BadOptionError` when the two do not belong together."""
        self.table = table
        self._checkpoint = checkpoint
        has_begun = any((checkpoint / "commits").glob("[0-9]*"))
        table.require_owner(_query_id(checkpoint), has_begun=has_begun)

    def commit(self, batch: int, lines: Iterable[str]) -> None:
        """Merge rows into the table as the version of a batch; nothing if it is there already."""
        if self.table.version == NO_VERSION:
            owner = _query_id(self._checkpoint)
            assert owner is not None, "Spark writes it before the first batch"
            self.table.claim(owner)
        self.table.commit(batch, lines)


class BackfillTable:
    """A table that no stream keeps; each backfill is a version, and replaces rows."""

    def __init__(self, table: Table) -> None:
        """Raise `BadOptionError` when it is a stream's."""
        self.table = Table(table.directory, replace(table.shape, merge=Merge.REPLACE))
        self.table.require_owner(BACKFILL, has_begun=False)

    def commit(self, batch: int, lines: Iterable[str]) -> None:  # noqa: ARG002 - it has none
        """Merge rows into the table as its next version."""
        self.table.claim(BACKFILL)
        self.table.commit(self.table.version + 1, lines)


def _query_id(checkpoint: Path) -> str | None:
    path = checkpoint / "metadata"
    try:
        found: str = json.loads(path.read_text(encoding="utf-8"))["id"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise BadOptionError(f"--checkpoint: {path} is damaged: {error}") from error
    return found
