"""What only Delta Lake has: transaction identifiers, `userMetadata`, OPTIMIZE and VACUUM.

A writer and number are an application's transaction (`txnAppId`, `txnVersion`), which the log keeps
for good. Notes are the commit's `userMetadata`: they go when the log forgets the commit, 30 days
later by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from spark_jobs.tables.lakehouse_table import (
    NO_COMMIT,
    Change,
    Commit,
    LakehouseTable,
    Optimized,
    commit_of,
    commit_text,
    java_side,
    java_strings,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_jobs.tables.lakehouse_table import Shape

_DELTA = "spark.databricks.delta."
REARRANGING = frozenset(
    {"CREATE TABLE", "ADD COLUMNS", "SET TBLPROPERTIES", "OPTIMIZE", "VACUUM START", "VACUUM END"}
)
"""Operations after which all rows are what they were."""


class DeltaTable(LakehouseTable):
    """A table with a log of Delta Lake."""

    format = "delta"
    settings: ClassVar[Mapping[str, str]] = {
        "delta.autoOptimize.optimizeWrite": "true",
        "delta.autoOptimize.autoCompact": "true",
        "delta.enableChangeDataFeed": "true",
        # Readers that know no vectors are not locked out.
        "delta.enableDeletionVectors": "false",
    }

    @property
    def name(self) -> str:
        """The table's name in SQL: its path."""
        return f"delta.`{self.directory}`"

    def last_number(self, writer: str) -> int:
        """Return the highest number that a writer has committed, or `NO_COMMIT`."""
        jvm, session = java_side(self.spark)
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, str(self.directory))
        none = jvm.scala.Option.apply(None)
        found = log.update(False, none, none).transactions().get(writer)
        return int(found.get()) if found.isDefined() else NO_COMMIT

    def history(self) -> list[Change]:
        """Return what happened to the table, latest first, as far as its history goes back."""
        rows = self.run(f"DESCRIBE HISTORY {self.name}").select(
            "version", "operation", "userMetadata"
        )
        changes = []
        for version, operation, text in rows.collect():
            commit = commit_of(text)
            is_ours = bool(commit) or operation in REARRANGING
            changes.append(Change(version, operation, is_ours, commit.get("notes", {})))
        return changes

    def optimize(self, file_bytes: int) -> Optimized:
        """Make large files of small ones; writers wait meanwhile, readers do not."""
        sizes = dict.fromkeys(
            (f"{_DELTA}optimize.minFileSize", f"{_DELTA}optimize.maxFileSize"), str(file_bytes)
        )
        with self.writing(), settings(self.spark, sizes):
            metrics = self.run(f"OPTIMIZE {self.name}").collect()[0]["metrics"]
        return Optimized(metrics["numFilesRemoved"], metrics["numFilesAdded"])

    def vacuum(self, hours: int) -> None:
        """Delete files that no version of the last hours needs; older versions cannot be read."""
        unchecked = {f"{_DELTA}retentionDurationCheck.enabled": "false"}
        with self.writing(), settings(self.spark, unchecked):
            self.run(f"VACUUM {self.name} RETAIN {hours} HOURS").collect()

    def _create(self, shape: Shape, properties: Mapping[str, str]) -> None:
        """Make the table by the builder: SQL would encode what is special in the path."""
        jvm, session = java_side(self.spark)
        builder = jvm.io.delta.tables.DeltaTable.createIfNotExists(session)
        builder = builder.location(str(self.directory))
        for name, kind in shape.columns.items():
            builder = builder.addColumn(name, kind)
        for name, value in properties.items():
            builder = builder.property(name, value)
        builder.partitionedBy(java_strings(self.spark, shape.partition_by)).execute()

    def _commit_settings(self, commit: Commit) -> dict[str, str]:
        return {
            f"{_DELTA}write.txnAppId": commit.writer,
            f"{_DELTA}write.txnVersion": str(commit.number),
            f"{_DELTA}commitInfo.userMetadata": commit_text(commit),
        }
