"""Taking a batch into an archive, so that each record is in it once, whatever happened before.

What makes it exactly-once is the record's own identity, its partition and offset, and not the
number of the batch: a checkpoint that is restored from yesterday has numbers that now stand for
other records. A batch whose offsets lie beyond all that were ever taken is new, which the table's
history tells (`archive_table`), and is appended without a look at the rows. The very batch that
the latest commit was, come again after a crash, is there. Any other is compared with the rows that
are there: what is archived already is left out. So neither a new checkpoint, nor an old one, nor a
backfill, nor a second job beside the first adds anything twice.

A row that is there with another content means that the topic is not the one that was archived:
then the job ends, and says which record it is.

Rejects are sent before the batch counts. They may be sent again with it, with an equal header
`source`, and are never lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_table import FLAG, LOST, TAKEN, WRITER, Ranges, taken_offsets
from spark_jobs.definitions.rejects import collected_rejects
from spark_jobs.errors import JobError
from spark_jobs.kafka.offsets import open_offsets
from spark_jobs.spark.streams import persisted, write_batch
from spark_jobs.tables.lakehouse_table import NO_COMMIT, Commit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from spark_jobs.options import DefinitionOptions
    from spark_jobs.tables.lakehouse_table import LakehouseTable

BATCH = "batch"


class _Brought(NamedTuple):
    """What a batch has of one partition."""

    first: int
    last: int
    rejected: int


@dataclass(slots=True)
class ArchiveWriter:
    """A writer to an archive; it remembers what the table's history said."""

    table: LakehouseTable
    options: DefinitionOptions
    rejects: str | None
    """Topic for rejects, if any."""

    _number: int = NO_COMMIT
    _taken: Ranges | None = None
    _lost: list[list[int]] = field(default_factory=list)

    def take(self, rows: DataFrame, batch: tuple[str, int] | None = None) -> None:
        """Take the rows (`archive_rows`) that the archive does not have yet; send rejects.

        Returns when they are committed. `batch` is the query and its number, if it is a stream's.
        """
        with persisted(rows), self.table.writing():
            self._take(rows, batch)

    def _take(self, rows: DataFrame, batch: tuple[str, int] | None) -> None:
        brought = _brought(rows)
        ranges = {number: (part.first, part.last) for number, part in brought.items()}
        if not brought:
            return
        identity = None if batch is None else [*batch, {str(p): [*r] for p, r in ranges.items()}]
        taken = self._known(identity)
        if taken is None:
            return
        if _may_be_there(ranges, taken):
            rows = self._not_there(rows, ranges)
        if self.rejects is not None and any(part.rejected for part in brought.values()):
            write_batch(collected_rejects(rows, self.rejects), self.options)
        lost = [*self._lost, *self._gone_before(ranges, taken)]
        taken = _joined(taken, ranges)
        notes = {TAKEN: {str(p): [*r] for p, r in taken.items()}, BATCH: identity, LOST: lost}
        valid = rows.where("reject IS NULL").drop("reject")
        self.table.append(valid, Commit(WRITER, self._number + 1, notes))
        self._number, self._taken, self._lost = self._number + 1, taken, lost

    def _known(self, identity: list[object] | None) -> Ranges | None:
        """Return what is taken, or None when the latest commit is this very batch."""
        number = self.table.last_number(WRITER)
        if self._taken is None or number != self._number:
            self._number = number
            notes = self.table.newest_notes()
            if identity is not None and notes.get(BATCH) == identity:
                return None
            self._taken, self._lost = taken_offsets(self.table, notes), notes.get(LOST, [])
        return self._taken

    def _gone_before(self, ranges: Ranges, taken: Ranges) -> list[list[int]]:
        """Return what the topic lost between what is taken and what the batch begins with."""
        ends = {number: taken[number][1] + 1 for number in ranges if number in taken}
        holes = {number: end for number, end in ends.items() if ranges[number][0] > end}
        if self.options.on_data_loss == "fail" or not holes:
            return []
        with open_offsets(self.table.spark, self.options) as offsets:
            earliest = offsets.earliest(self.options.topic)
        return [
            [number, end, min(ranges[number][0], earliest[number]) - 1]
            for number, end in holes.items()
            if earliest[number] > end
        ]

    def _not_there(self, rows: DataFrame, ranges: Ranges) -> DataFrame:
        """Leave out rows that are there; raise `JobError` if there are others in their place."""
        where = " OR ".join(
            f"(partition = {number} AND offset BETWEEN {first} AND {last})"
            for number, (first, last) in ranges.items()
        )
        there = self.table.within(rows.sparkSession).read().where(where)
        there = there.select("partition", "offset", "timestamp", "value_crc32").alias("there")
        both = rows.alias("here").join(there, ["partition", "offset"])
        other = both.where(
            "here.timestamp != there.timestamp OR NOT here.value_crc32 <=> there.value_crc32"
        ).first()
        if other is not None:
            raise JobError(
                f"{self.table.directory} holds another record for partition {other['partition']}, "
                f"offset {other['offset']}: the topic was deleted and made anew, or is another "
                f"cluster's. Use another {FLAG}"
            )
        return rows.join(there.select("partition", "offset"), ["partition", "offset"], "left_anti")


def _brought(rows: DataFrame) -> dict[int, _Brought]:
    counts = rows.groupBy("partition").agg(F.min("offset"), F.max("offset"), F.count("reject"))
    return {row[0]: _Brought(*row[1:]) for row in counts.collect()}


def _may_be_there(ranges: Ranges, taken: Mapping[int, tuple[int, int]]) -> bool:
    return any(
        number in taken and first <= taken[number][1] and last >= taken[number][0]
        for number, (first, last) in ranges.items()
    )


def _joined(taken: Ranges, ranges: Ranges) -> Ranges:
    both = dict(taken)
    for number, (first, last) in ranges.items():
        known = taken.get(number, (first, last))
        both[number] = (min(first, known[0]), max(last, known[1]))
    return both
