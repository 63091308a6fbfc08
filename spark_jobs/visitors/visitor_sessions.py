"""Sessions of visitors, and what follows from them: funnels, and ways from page to page.

A session is what a visitor does with no pause of the gap or longer, and no further than the next
multiple of the longest time there is for one, if a definition has that. Steps of a session are in
the order of event time, and of partition and offset where times are equal. A funnel is a list of
steps; a session has reached its second step if that came somewhere after the first, and so on. Both
it and the transitions, from each step to the next, count for the windows in which sessions begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, PositiveInt
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.fields import Reason, Section
from spark_jobs.definitions.rejects import KEEP_NULLS
from spark_jobs.definitions.typed_records import require_sql
from spark_jobs.definitions.windows import seconds_of, window_structs_sql
from spark_jobs.options import Duration, TopicName  # noqa: TC001 - pydantic reads them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from spark_jobs.definitions.definition import Definition

START, END = "(start)", "(end)"
"""What transitions say before the first step of a session and after its last."""

_EVENT = "event_time, partition, offset, page, step, referrer"
WITH_MILLISECONDS = KEEP_NULLS.replace("ssX", "ss.SSSX")
"""Options of `to_json` for sessions."""

IN_PLACE = ("place.granularity", "place.window.start", "place.window.end")
"""The columns of a window, of a struct of `windows.window_structs_sql`."""


class ActivitySection(Section):
    """The section [activity] of a definition."""

    prefix: TopicName
    """topics are PREFIX.sessions, .funnels, .transitions and .top-pages"""

    visitor: str
    """SQL of the visitor that a valid record is of"""

    page: str
    """SQL of the page that was opened"""

    step: str
    """SQL of what the page is called in funnels and transitions"""

    referrer: str = "NULL"
    """SQL of the site that the visitor came from"""

    gap: Duration = "30 minutes"
    """a pause that ends a session"""

    longest: Duration | None = None
    """each multiple of it since 1970, UTC, ends all sessions: `1 day` at midnight. What never
    pauses, a robot say, otherwise has a session that grows, and costs more with each batch"""

    watermark: Duration = "15 minutes"
    """how late a record may be and still count"""

    granularities: Annotated[tuple[Duration, ...], Field(min_length=1)] = ("1 hour",)
    """lengths of the windows that funnels, transitions and pages are counted in"""

    top: PositiveInt = 10
    """pages in a list of top pages"""

    longest_path: PositiveInt = 50
    """steps that a session's record lists, from its first on"""

    longest_text: PositiveInt = 1_000
    """characters of visitor, page, step and referrer that count, so that a session's record fits
    its topic"""

    funnels: dict[Reason, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default={})
    """steps by the funnel's name"""


def events(parsed: DataFrame, definition: Definition) -> DataFrame:
    """Return the valid ones of parsed records with `visitor`, `page`, `step` and `referrer`.

    Raises `BadOptionError` that names the expression of the definition which Spark refuses.
    """
    section = definition.section("activity", ActivitySection)
    texts = {name: getattr(section, name) for name in ("visitor", "page", "step", "referrer")}
    for name, sql in texts.items():
        require_sql(parsed, definition, f"activity.{name}", sql)
    return parsed.where("rejection IS NULL").select(
        "event_time",
        "partition",
        "offset",
        *(text_of(section, sql).alias(name) for name, sql in texts.items()),
    )


def text_of(section: ActivitySection, sql: str) -> Column:
    """Return what an expression of the section makes, as text of which not too much counts."""
    return F.left(F.expr(sql).cast("string"), F.lit(section.longest_text))


def sessions(events: DataFrame, section: ActivitySection) -> DataFrame:
    """Return a row per session, and all its steps in the column `path`.

    `reached` is the number of steps by funnel. Of a stream, a session comes once: when it is
    closed, because the watermark has passed its last event by the gap.
    """
    rows = (
        events.withWatermark("event_time", section.watermark)
        .groupBy(F.session_window("event_time", section.gap).alias("session"), *_who(section))
        .agg(F.expr(f"sort_array(collect_list(struct({_EVENT})))").alias("events"))
        .withColumn("path", F.expr("transform(events, event -> event.step)"))
        .withColumn("reached", F.expr(_reached_sql(section)))
        .withColumn("first", F.expr("events[0]"))
        .withColumn("last", F.expr("element_at(events, -1)"))
    )
    return rows.selectExpr(
        "visitor",
        "first.event_time AS start",
        "last.event_time AS end",
        "unix_millis(last.event_time) - unix_millis(first.event_time) AS milliseconds",
        "size(path) AS events",
        "first.page AS entry",
        "last.page AS exit",
        "first.referrer AS referrer",
        "path",
        "reached",
    )


def told(sessions: DataFrame, section: ActivitySection) -> DataFrame:
    """Return sessions as tables and topics have them, of very long ones the path's begin."""
    return sessions.withColumn("path", F.slice("path", 1, section.longest_path))


def _who(section: ActivitySection) -> Iterator[Column]:
    yield F.col("visitor")
    if section.longest is not None:
        seconds = seconds_of(section.longest)
        yield F.floor(F.unix_seconds("event_time") / seconds).alias("span")


def _reached_sql(section: ActivitySection) -> str:
    pairs = []
    for name, steps in section.funnels.items():
        listed = _array(steps)
        pairs.append(
            f"'{name}', aggregate(path, 0, "
            f"(n, step) -> CASE WHEN step = try_element_at({listed}, n + 1) THEN n + 1 ELSE n END)"
        )
    return f"cast(map({', '.join(pairs)}) AS map<string, int>)"


def _array(steps: tuple[str, ...]) -> str:
    return f"array({', '.join(map(_quoted, steps))})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def funnels(sessions: DataFrame, section: ActivitySection) -> DataFrame:
    """Return a row per window, funnel and step: how many sessions reached it."""
    counts = ", ".join(
        f"named_struct('funnel', '{name}', 'number', {number}, "
        f"'step', {_array(steps)}[{number - 1}], "
        f"'sessions', count_if(reached['{name}'] >= {number}))"
        for name, steps in section.funnels.items()
        for number in range(1, len(steps) + 1)
    )
    rows = (
        _in_windows(sessions, section).groupBy("place").agg(F.expr(f"array({counts})").alias("c"))
    )
    return rows.select("place", F.explode("c").alias("count")).selectExpr(*IN_PLACE, "count.*")


def transitions(sessions: DataFrame, section: ActivitySection) -> DataFrame:
    """Return a row per window and pair of steps: how often it was gone."""
    # Nothing but what is there is looked up by place: Spark makes what a lambda names anew for each
    # of its elements.
    into = f"transform(path, (to, i) -> named_struct('from', {_before('i')}, 'to', to))"
    out = f"named_struct('from', {_before('size(path)')}, 'to', '{END}')"
    pairs = f"array_append({into}, {out})"
    rows = _in_windows(sessions, section).withColumn("pair", F.explode(F.expr(pairs)))
    counted = rows.groupBy("place", "pair").agg(F.count(F.lit(1)).alias("times"))
    return counted.selectExpr(*IN_PLACE, "pair.*", "times")


def _before(place: str) -> str:
    return f"if({place} = 0, '{START}', get(path, {place} - 1))"


def _in_windows(sessions: DataFrame, section: ActivitySection) -> DataFrame:
    places = F.explode(F.expr(window_structs_sql(section.granularities))).alias("place")
    sessions = sessions.select(F.col("start").alias("event_time"), "path", "reached")
    return sessions.select(places, "path", "reached")
