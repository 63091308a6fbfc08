"""How often each page was opened in each window, and which were opened most."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.rejects import KEEP_NULLS
from spark_jobs.windows import with_windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from spark_jobs.sessions import ActivitySection
    from spark_jobs.tables import Row, Table

Window = tuple[str, str]
"""Granularity and start."""


def page_views(events: DataFrame, section: ActivitySection) -> DataFrame:
    """Return a row per window and page: `value`, JSON as text, `granularity` and `start`."""
    rows = with_windows(events, section.granularities, section.watermark)
    counted = rows.groupBy("granularity", "window", "page").agg(F.count(F.lit(1)).alias("views"))
    value = (
        "named_struct('granularity', granularity, 'start', window.start, 'end', window.end, "
        "'page', page, 'views', views)"
    )
    start = "date_format(window.start, \"yyyy-MM-dd'T'HH:mm:ssX\")"
    return counted.select(
        F.expr(f"to_json({value}, {KEEP_NULLS})").alias("value"),
        "granularity",
        F.expr(start).alias("start"),
    )


def windows_of(views: DataFrame) -> set[Window]:
    """Return the windows that rows of `page_views` belong to."""
    rows = views.select("granularity", "start").distinct().collect()
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
