"""What becomes of a batch of sessions, or of opened pages: tables first, then topics.

A batch may come twice. Each table takes it once, by its number; what goes to a topic is either the
batch's own or what the table says has changed with that number, so the second time it is the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.definitions.rejects import collected_rejects
from spark_jobs.spark.local_tables import local_table
from spark_jobs.spark.streams import records_of, write_batch
from spark_jobs.spark.table_ownership import lines_of
from spark_jobs.spark.tables import Merge, Shape
from spark_jobs.visitors.page_views import counted, page_views, top_pages, windows_of
from spark_jobs.visitors.visitor_sessions import funnels, transitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.options import SparkOptions
    from spark_jobs.spark.table_ownership import KeptTable
    from spark_jobs.spark.tables import Row
    from spark_jobs.visitors.visitor_sessions import ActivitySection

_WINDOW = ("granularity", "start")
_DAY = len("2026-01-05")

OF_SESSIONS = {
    "sessions": Shape(("visitor", "start"), "start", Merge.APPEND, period_characters=_DAY),
    "funnels": Shape((*_WINDOW, "funnel", "number"), "start", Merge.ADD, ("sessions",)),
    "transitions": Shape((*_WINDOW, "from", "to"), "start", Merge.ADD, ("times",)),
}
OF_PAGES = {
    "pages": Shape((*_WINDOW, "page"), "start", Merge.ADD, ("views",), period_characters=_DAY),
    "top-pages": Shape(_WINDOW, "start"),
}
TOPICS = ("sessions", "funnels", "transitions", "top-pages")
"""The tables that are topics too."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where results go."""

    options: SparkOptions
    section: ActivitySection
    topics: Mapping[str, str]
    """By table."""

    tables: Mapping[str, KeptTable]

    rejects: str | None = None
    """The topic of rejects, if they are kept."""


def take_sessions(target: Target, sessions: DataFrame, batch: int) -> None:
    """Write closed sessions (`visitor_sessions.sessions`), and count them."""
    counts = {"funnels": funnels, "transitions": transitions}
    sessions.persist()
    try:
        target.tables["sessions"].commit(batch, lines_of(sessions))
        for name, counted in counts.items():
            target.tables[name].commit(batch, lines_of(counted(sessions, target.section)))
        write_batch(records_of(sessions, target.topics["sessions"]), target.options)
    finally:
        sessions.unpersist()
    changed = {name: target.tables[name].table.changed() for name in counts}
    _write(sessions.sparkSession, target, changed)


def take_pages(target: Target, opened: DataFrame, batch: int) -> None:
    """Count the views of pages (`page_views.opened`) and their top pages, and write rejects."""
    rows = counted(opened).persist()
    try:
        pages = target.tables["pages"]
        pages.commit(batch, lines_of(page_views(rows)))
        if target.rejects is not None:
            write_batch(collected_rejects(rows, target.rejects), target.options)
    finally:
        rows.unpersist()
    windows = windows_of(pages.table.changed())
    top = list(top_pages(pages.table, windows, target.section.top))
    target.tables["top-pages"].commit(batch, map(json.dumps, top))
    _write(opened.sparkSession, target, {"top-pages": top})


def _write(spark: SparkSession, target: Target, rows: Mapping[str, list[Row]]) -> None:
    """Write rows of tables to their topics, each with its table's key as JSON."""
    records = [
        (
            _json({field: row[field] for field in target.tables[name].table.shape.key}),
            _json(row),
            name,
        )
        for name, some in rows.items()
        for row in some
    ]
    if records:
        frame = local_table(
            spark,
            [(key, value, target.topics[name]) for key, value, name in records],
            {"key": "string", "value": "string", "topic": "string"},
        )
        write_batch(frame, target.options)


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
