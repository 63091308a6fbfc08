"""The page without Spark: what is made of numbers, few or many, odd or none."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.report.plots import DARK, LIGHT, Heat, data_uri, draw_bars, draw_heat, draw_lines
from spark_jobs.report.report_numbers import (
    MOST_BUCKETS,
    Bucket,
    GroupLag,
    JobBatch,
    JobNumbers,
    ReportNumbers,
    Throughput,
    TopicNumbers,
    as_time,
    largest,
    overlapping,
)
from spark_jobs.report.report_page import render
from tests.spark_jobs.page_reading import Page

NOON = datetime(2013, 3, 1, 12, tzinfo=UTC)
EMPTY = ReportNumbers("Nothing", NOON, "topic", valid=0, rejected=0, by_event_time=None)
SECONDS = st.integers(0, 4_000_000_000)


def test_a_page_of_nothing_says_so() -> None:
    page = Page.of(render(EMPTY))
    assert "There was nothing to show." in page.texts["p"]
    assert page.pictures == []


def test_names_that_look_like_html_are_text() -> None:
    group = GroupLag("<script>alert(1)</script>", "t&t", 0, 1, 5)
    page = Page.of(render(replace(EMPTY, title='"><img src=x>', groups=[group])))
    assert page.texts["title"] == '"><img src=x>'
    assert page.tables["Consumer groups"][1][:2] == ["<script>alert(1)</script>", "t&t"]
    assert all(picture["src"].startswith("data:") for picture in page.pictures)
    assert "script" not in page.texts


def test_a_single_batch_and_a_single_bucket_are_drawn() -> None:
    job = JobNumbers("route", [JobBatch(NOON, 5, 1.0, 0)], dropped=0)
    one = Throughput("t", Bucket(1, "second"), [(NOON, 5)])
    page = Page.of(render(replace(EMPTY, by_event_time=one, jobs=[job], reasons={"odd": 1})))
    assert len(page.pictures) == 4
    assert page.tables["Rejects by reason"][1:] == [["odd", "1"], ["sum", "1"]]


def test_topics_of_different_times_have_tables_that_are_told_apart() -> None:
    years = [datetime(year, 3, 1, tzinfo=UTC) for year in (2013, 2026)]
    series = [Throughput(str(at.year), Bucket(60, "minute"), [(at, 5)]) for at in years]
    facts = [TopicNumbers(one.name, 1, 5, 10, *one.points[0][:1] * 2) for one in series]
    page = Page.of(render(replace(EMPTY, topics=facts, by_append_time=series)))
    assert [*page.tables][1:] == [
        f"Records per minute, {at:%Y-%m-%d %H:%M:%S} to {at:%Y-%m-%d %H:%M:%S}" for at in years
    ]


@given(st.dictionaries(SECONDS, st.integers(1, 1000), min_size=1, max_size=20))
def test_no_record_is_lost_between_buckets(counts: dict[int, int]) -> None:
    bucket = Bucket.for_span(min(counts), max(counts))
    made = Throughput.of("t", bucket, counts)
    assert made.records == sum(counts.values())
    assert 1 <= len(made.points) <= MOST_BUCKETS + 1
    starts = [at for at, _ in made.points]
    step = timedelta(seconds=bucket.seconds)
    assert all(b - a == step for a, b in itertools.pairwise(starts))
    assert starts[0] <= as_time(min(counts)) < starts[0] + step


@pytest.mark.parametrize(
    ("seconds", "word"),
    [
        *((1, "second"), (3599, "10 seconds"), (86_400, "10 minutes")),
        *((30 * 86_400, "6 hours"), (365 * 86_400, "day"), (5 * 365 * 86_400, "week")),
    ],
)
def test_the_shortest_bucket_is_taken_that_fits(seconds: int, word: str) -> None:
    assert Bucket.for_span(1_000_000, 1_000_000 + seconds).word == word


def test_weeks_begin_on_monday_and_days_at_midnight() -> None:
    friday = int(NOON.timestamp())
    assert as_time(Bucket(7 * 86_400, "week").start_of(friday)) == datetime(2013, 2, 25, tzinfo=UTC)
    assert as_time(Bucket(86_400, "day").start_of(friday)) == datetime(2013, 3, 1, tzinfo=UTC)


def test_topics_of_the_same_time_are_drawn_together() -> None:
    def at(*minutes: int) -> Throughput:
        points = [(NOON + timedelta(minutes=minute), 1) for minute in minutes]
        return Throughput(str(minutes[0]), Bucket(60, "minute"), points)

    late, early, between = at(100, 110), at(0, 10), at(5, 20)
    nothing = Throughput("none", Bucket(60, "minute"), [])
    assert overlapping([late, early, nothing, between]) == [[early, between], [late]]


def test_topics_of_one_plot_are_counted_by_the_same_length_of_time() -> None:
    seconds = Throughput("s", Bucket(1, "second"), [(NOON + timedelta(seconds=75), 5)])
    minutes = Throughput(
        "m", Bucket(60, "minute"), [(NOON + timedelta(minutes=m), 2) for m in (0, 9)]
    )
    ((long, short),) = overlapping([seconds, minutes])
    assert (long.bucket.word, short.bucket.word) == ("minute", "minute")
    assert short.points == [(NOON + timedelta(minutes=1), 5)]
    assert long.records == 4


def test_a_line_that_is_alone_is_named_where_another_plot_has_another() -> None:
    [axes] = draw_lines([("flights", [(NOON, 3.0)])], "records", LIGHT, is_named=True).axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["flights"]


def test_a_lag_of_nothing_has_no_fractions() -> None:
    [axes] = draw_lines(
        [("route", [(NOON, 0.0), (NOON + timedelta(hours=1), 0.0)])], "lag", LIGHT
    ).axes
    assert list(axes.get_yticks()) == [0, 1]


def test_more_topics_than_colours_are_drawn_as_others() -> None:
    many = [Throughput(str(n), Bucket(1, "second"), [(NOON, n)]) for n in range(1, 11)]
    found = largest(many, 3)
    assert [(one.name, one.records) for one in found] == [("10", 10), ("9", 9), ("8 others", 36)]
    assert largest(many, 10) == many


def test_a_picture_is_the_same_each_time_and_another_in_dark() -> None:
    points = [(NOON, 1.0), (NOON + timedelta(hours=1), 2.0)]
    heat = Heat(["a" * 80, "b"], ["1", "2"], [[1.0, math.nan], [0.0, 2.0]], "hours", str)
    drawings = [
        lambda theme: draw_lines([("a", points), ("b", points)], "records", theme),
        lambda theme: draw_bars([("a", 3), ("b" * 90, 0)], "records", theme, theme.bad),
        lambda theme: draw_heat(heat, theme),
    ]
    for draw in drawings:
        assert data_uri(draw, LIGHT) == data_uri(draw, LIGHT)
        assert data_uri(draw, LIGHT) != data_uri(draw, DARK)
