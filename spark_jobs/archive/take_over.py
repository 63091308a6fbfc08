"""Taking over an archive of before there were tables: Parquet files by date and hour, and a ledger.

    OLD/event_date=2013-03-01/event_hour=05/part-….parquet
    OLD/_archive/archive.json                  topic, columns, offsets taken, files on their way
    OLD/_archive/staged/TOKEN/…                files of a batch that counts and is not in place yet

The rows become the first commit of a table, with the offsets that the ledger has, so the job goes
on behind them and its topic is not read again. A row whose checksum says that it changed since it
was archived gets no `row_hash`: the audit still tells it. The old directory is only read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_rows import EVENT_DATE, ORIGIN, ROW_HASH, row_hash_sql
from spark_jobs.archive.archive_table import TAKEN, WRITER, open_archive
from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.locks import locked
from spark_jobs.spark.local_tables import no_rows
from spark_jobs.tables.lakehouse_table import NO_COMMIT, Commit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.tables.table_format import TableFormat

VERSION = 1
FILES = "event_date=*/event_hour=*/[!._]*.parquet"


def ledger_of(old: Path) -> Mapping[str, Any]:
    """Return the ledger of an old archive; raise `BadOptionError` when it cannot be read."""
    path = old / "_archive" / "archive.json"
    try:
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if found["version"] != VERSION:
            raise BadOptionError(f"--take-over: {path} is of version {found['version']}")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BadOptionError(
            f"--take-over: {old} is no archive of an earlier version: {path} cannot be read ({why})"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadOptionError(f"--take-over: {path} is damaged: {error}") from error
    return found


def take_over(spark: SparkSession, old: Path, directory: Path, kind: TableFormat) -> int:
    """Make an archive's rows the first commit of a table; return how many there are.

    Raises `JobError` when the table has commits already, or a job still writes to the old archive.
    """
    with locked(old / "_archive" / "writing.lock", seconds=0.0, purpose="for its writer to end"):
        ledger = ledger_of(old)
        table = open_archive(spark, directory, kind, ledger["topic"], ledger["columns"])
        if table.last_number(WRITER) != NO_COMMIT:
            raise JobError(f"{directory} has been written to already: name a new directory")
        rows = _rows(spark, old, ledger)
        table.append(rows, Commit(WRITER, 0, {TAKEN: ledger[TAKEN], "taken_over": str(old)}))
    return table.read().count()


def _rows(spark: SparkSession, old: Path, ledger: Mapping[str, Any]) -> DataFrame:
    fields: Mapping[str, str] = ledger["columns"]
    schema = {**ORIGIN, **fields, "row_crc32": "bigint", EVENT_DATE: "date", "event_hour": "int"}
    sql = ", ".join(f"`{name}` {kind}" for name, kind in schema.items())
    rows = no_rows(spark, sql)
    for base, files in _files(old, ledger).items():
        if files:
            reader = spark.read.schema(sql).option("basePath", str(base))
            rows = rows.unionByName(reader.parquet(*map(str, files)))
    columns = [*ORIGIN, *fields]
    names = ", ".join(f"`{name}`" for name in sorted(columns))
    how = "map('timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
    is_whole = f"row_crc32 = crc32(cast(to_json(struct({names}), {how}) AS binary))"
    row_hash = F.expr(f"CASE WHEN {is_whole} THEN {row_hash_sql(columns)} END")
    return rows.select(*columns, row_hash.alias(ROW_HASH), EVENT_DATE)


def _files(old: Path, ledger: Mapping[str, Any]) -> dict[Path, list[Path]]:
    """Return the files that count, by the directory that their partitions are below."""
    found = {old: sorted(old.glob(FILES))}
    if ledger["pending"] is not None:
        staged = old / "_archive" / "staged" / ledger["pending"]["staged"]
        found[staged] = [staged / n for n in ledger["pending"]["files"] if (staged / n).exists()]
    return found
