"""How often each page was opened in each window, and which were opened most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.rejects import reject_sql
from spark_jobs.definitions.typed_records import require_sql
from spark_jobs.definitions.windows import window_structs_sql
from spark_jobs.visitors.visitor_sessions import IN_PLACE, ActivitySection, text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.definitions.definition import Definition


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
    """Return a row per window and page."""
    return counted.where("place IS NOT NULL").selectExpr(*IN_PLACE, "page", "views")


def top_pages(views: DataFrame, top: int) -> DataFrame:
    """Return for each window of the table of views its pages with most views."""
    most = "sort_array(collect_list(struct(-views AS minus, page, views)))"
    return views.groupBy("granularity", "start", "end").agg(
        F.sum("views").alias("views"),
        F.count(F.lit(1)).alias("pages"),
        F.expr(f"transform(slice({most}, 1, {top}), one -> struct(one.page, one.views))").alias(
            "top"
        ),
    )
