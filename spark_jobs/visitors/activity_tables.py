"""What becomes of a batch of sessions, or of opened pages: tables first, then topics.

A batch may come twice. Each table takes it once, by its number; what goes to a topic is either the
batch's own or what the table then has for its keys, so the second time it is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.definitions.rejects import KEEP_NULLS, collected_rejects
from spark_jobs.spark.streams import persisted, records_of, write_batch
from spark_jobs.tables.lakehouse_table import Merge
from spark_jobs.visitors.page_views import counted, page_views, top_pages
from spark_jobs.visitors.visitor_sessions import WITH_MILLISECONDS, funnels, told, transitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from spark_jobs.options import SparkOptions
    from spark_jobs.tables.kept_table import KeptTable
    from spark_jobs.visitors.visitor_sessions import ActivitySection

_WINDOW = ("granularity", "start")

OF_SESSIONS = {
    "sessions": Merge(("visitor", "start"), instant="start", has_new_keys=True),
    "funnels": Merge((*_WINDOW, "funnel", "number"), ("sessions",), "start"),
    "transitions": Merge((*_WINDOW, "from", "to"), ("times",), "start"),
}
OF_PAGES = {
    "pages": Merge((*_WINDOW, "page"), ("views",), "start"),
    "top-pages": Merge(_WINDOW, instant="start"),
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

    def write(self, name: str, rows: DataFrame, json_options: str = KEEP_NULLS) -> None:
        """Write rows of a table to its topic."""
        records = records_of(rows, self.tables[name].how.key, self.topics[name], json_options)
        write_batch(records, self.options)


def take_sessions(target: Target, sessions: DataFrame, batch: int) -> None:
    """Write closed sessions (`visitor_sessions.sessions`), and count them."""
    with persisted(sessions):
        rows = told(sessions, target.section)
        target.tables["sessions"].take(rows, batch)
        target.write("sessions", rows, WITH_MILLISECONDS)
        if "funnels" in target.tables:
            _add(target, "funnels", funnels(sessions, target.section), batch)
        _add(target, "transitions", transitions(sessions, target.section), batch)


def take_pages(target: Target, opened: DataFrame, batch: int) -> None:
    """Count the views of pages (`page_views.opened`) and their top pages, and write rejects."""
    with persisted(counted(opened)) as rows:
        views = page_views(rows)
        pages = target.tables["pages"].take(views, batch)
        if target.rejects is not None:
            write_batch(collected_rejects(rows, target.rejects), target.options)
        in_windows = pages.matching(views, target.tables["top-pages"].how)
        with persisted(top_pages(in_windows, target.section.top)) as top:
            target.tables["top-pages"].take(top, batch)
            target.write("top-pages", top)


def _add(target: Target, name: str, rows: DataFrame, batch: int) -> None:
    """Add rows to those of a table, and write to its topic what it then has for their keys."""
    with persisted(rows):
        table = target.tables[name].take(rows, batch)
        target.write(name, table.matching(rows, target.tables[name].how))
