"""What only Iceberg has: a catalog, snapshots with properties, and procedures.

The catalog is Hadoop's, whose tables are directories: the table's directory lies in that of its
warehouse, so any reader opens it by its path. Writer, number and notes are properties of the
commit's snapshot; before `vacuum` lets snapshots go, it notes the latest commit of each writer as
a property of the table.
"""

from __future__ import annotations

import json
import time
import zlib
from typing import TYPE_CHECKING, Any, ClassVar

from spark_jobs.tables.lakehouse_table import (
    NO_COMMIT,
    Change,
    Commit,
    LakehouseTable,
    Optimized,
    commit_of,
    commit_text,
    java_side,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from spark_jobs.tables.lakehouse_table import Shape

COMMIT = "spark-jobs-commit"
"""The snapshot's property."""

REARRANGING = "replace"
ORPHANS_AFTER_SECONDS = 25 * 3600
"""Iceberg refuses to take younger files for left over."""


class IcebergTable(LakehouseTable):
    """A table with metadata of Iceberg."""

    format = "iceberg"
    settings: ClassVar[Mapping[str, str]] = {
        "format-version": "2",
        "write.metadata.delete-after-commit.enabled": "true",
    }

    @property
    def name(self) -> str:
        """The table's name in SQL: in a catalog of its parent directory."""
        return f"{self._catalog}.`{self.directory.name}`"

    @property
    def _catalog(self) -> str:
        return f"iceberg_{zlib.crc32(str(self.directory.parent).encode()):08x}"

    def run(self, statement: str) -> DataFrame:
        """Run a statement in a session that has the catalog."""
        catalog = f"spark.sql.catalog.{self._catalog}"
        for key, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "hadoop",
            ".warehouse": str(self.directory.parent),
            ".cache-enabled": "false",  # other processes commit too
        }.items():
            self.spark.conf.set(catalog + key, value)
        return super().run(statement)

    def last_number(self, writer: str) -> int:
        """Return the highest number that a writer has committed, or `NO_COMMIT`."""
        return next((c["number"] for c in self._commits() if c["writer"] == writer), NO_COMMIT)

    def newest_notes(self) -> Mapping[str, Any]:
        """Return the notes of the latest commit that has some."""
        return next((c["notes"] for c in self._commits() if c["notes"]), {})

    def history(self) -> list[Change]:
        """Return what happened to the table, latest first, as far as its history goes back."""
        changes = []
        for version, operation, text in self._snapshots():
            commit = commit_of(text)
            is_ours = bool(commit) or operation == REARRANGING
            changes.append(Change(version, operation, is_ours, commit.get("notes", {})))
        return changes

    def optimize(self, file_bytes: int) -> Optimized:
        """Make large files of small ones; writers wait meanwhile, readers do not."""
        options = f"map('target-file-size-bytes', '{file_bytes}', 'min-input-files', '2')"
        with self.writing():
            found = self._call("rewrite_data_files", f"options => {options}").collect()[0]
        return Optimized(found["rewritten_data_files_count"], found["added_data_files_count"])

    def vacuum(self, hours: int) -> None:
        """Delete files that no version of the last hours needs; older versions cannot be read."""
        now = time.time()  # noqa: TID251 - ages of files are told by the clock
        with self.writing():
            newest = {c["writer"]: json.dumps(c) for c in reversed([*self._commits()])}
            for writer, text in newest.items():
                value = text.replace("\\", "\\\\").replace("'", "\\'")
                self.run(
                    f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{COMMIT}.{writer}' = '{value}')"
                )
            before = _timestamp(now - hours * 3600)
            self._call("expire_snapshots", f"older_than => {before}").collect()
            orphans = _timestamp(now - max(ORPHANS_AFTER_SECONDS, hours * 3600))
            self._call("remove_orphan_files", f"older_than => {orphans}").collect()

    def _call(self, procedure: str, arguments: str) -> DataFrame:
        table = f"table => '`{self.directory.name}`'"
        return self.run(f"CALL {self._catalog}.system.{procedure}({table}, {arguments})")

    def _commits(self) -> Iterator[Mapping[str, Any]]:
        """Yield what `commit_text` made of commits, latest first, then each writer's last."""
        yield from (commit for _, _, text in self._snapshots() if (commit := commit_of(text)))
        for name, text in dict(self._table().properties()).items():
            if name.startswith(f"{COMMIT}."):
                yield commit_of(text)

    def _snapshots(self) -> Iterator[tuple[int, str, str | None]]:
        """Yield id, operation and commit of each snapshot, from the current one back."""
        table = self._table()
        snapshot = table.currentSnapshot()
        while snapshot is not None:
            yield snapshot.snapshotId(), snapshot.operation(), snapshot.summary().get(COMMIT)
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)

    def _table(self) -> Any:  # noqa: ANN401 - Java's
        """Return the table as Java has it, which costs no job of Spark's."""
        self.run("SELECT 1")  # the session has the catalog now
        jvm, session = java_side(self.spark)
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, self.name)

    def _create(self, shape: Shape, properties: Mapping[str, str]) -> None:
        columns = ", ".join(f"`{name}` {kind}" for name, kind in shape.columns.items())
        partitions = ", ".join(f"`{name}`" for name in shape.partition_by)
        settings = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.run(
            f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}) USING iceberg "
            + (f"PARTITIONED BY ({partitions}) " if partitions else "")
            + f"TBLPROPERTIES ({settings})"
        )

    def _commit_settings(self, commit: Commit) -> dict[str, str]:
        return {f"spark.sql.iceberg.snapshot-property.{COMMIT}": commit_text(commit)}


def _timestamp(seconds: float) -> str:
    return f"timestamp_millis({int(seconds * 1000)})"
