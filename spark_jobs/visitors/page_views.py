"""How often each page was opened in each window, and which were opened most."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.rejects import KEEP_NULLS, reject_sql
from spark_jobs.definitions.typed_records import require_sql
from spark_jobs.definitions.windows import window_structs_sql
from spark_jobs.visitors.visitor_sessions import ActivitySection, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from spark_jobs.definitions.definition import Definition
    from spark_jobs.spark.tables import Row, Table

Window = tuple[str, str]
"""Granularity and start."""


def opened(parsed: DataFrame, definition: Definition, job: str) -> DataFrame:
    """Return of each parsed record the window structs and the `page`, or else its `reject`.

    Raises `BadOptionError` that names the expression of the definition which Spark refuses.
    """
    section = definition.section("activity", ActivitySection)
    require_sql(parsed, definition, "activity.page", section.page)
    windows = window_structs_sql(section.granularities)
    return parsed.select(
        F.expr(f"CASE WHEN rejection IS NULL THEN {windows} ELSE array(NULL) END").alias("places"),
        F.when(F.expr("rejection IS NULL"), text_of(section, section.page)).alias("page"),
        F.expr(reject_sql(job)).alias("reject"),
    )


def counted(opened: DataFrame) -> DataFrame:
    """Return a row per window and page, with its `views`, and one per reject, which has no window.

    So records are parsed once for both, and few rows are left of them.
    """
    rows = opened.select(F.explode("places").alias("place"), "page", "reject")
    return rows.groupBy("place", "page", "reject").agg(F.count(F.lit(1)).alias("views"))


def page_views(counted: DataFrame) -> DataFrame:
    """Return `value`, JSON as text, per window and page."""
    value = (
        "named_struct('granularity', place.granularity, 'start', place.window.start, "
        "'end', place.window.end, 'page', page, 'views', views)"
    )
    rows = counted.where("place IS NOT NULL")
    return rows.select(F.expr(f"to_json({value}, {KEEP_NULLS})").alias("value"))


def windows_of(rows: Iterable[Row]) -> set[Window]:
    """Return the windows that rows of the table of views belong to."""
    return {(row["granularity"], row["start"]) for row in rows}


def top_pages(table: Table, windows: Iterable[Window], top: int) -> Iterator[Row]:
    """Yield for each window its pages with most views, as the table of views has them."""
    wanted = set(windows)
    periods = {table.shape.period_of({table.shape.period: start}) for _, start in wanted}
    pages: dict[Window, list[Row]] = defaultdict(list)
    for period in sorted(periods):
        for row in table.rows(period):
            window = (row["granularity"], row["start"])
            if window in wanted:
                pages[window].append(row)
    for (granularity, start), rows in sorted(pages.items()):
        most = sorted(rows, key=lambda row: (-row["views"], row["page"]))[:top]
        yield {
            "granularity": granularity,
            "start": start,
            "end": rows[0]["end"],
            "views": sum(row["views"] for row in rows),
            "pages": len(rows),
            "top": [{"page": row["page"], "views": row["views"]} for row in most],
        }
