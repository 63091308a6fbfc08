"""What the pipeline says when counts do not add up."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from spark_jobs.account import Account
from spark_jobs.tally import RouteTally, WindowTally

ROUTES = RouteTally(
    source=12,
    routed={"on-time": 6, "delayed": 3, "cancelled": 1, "rejected": 2},
    copies=0,
    lost=0,
    strays=0,
    reasons={"not-json": 2},
)
GOOD = Account(
    lines=12,
    expected_reasons={"not-json": 2},
    topics={route: f"flights.{route}" for route in ROUTES.routed},
    routes=ROUTES,
    windows=WindowTally(windows=4, flights=10, hours=[]),
    was_stopped=False,
)


def test_counts_that_add_up_are_no_problem() -> None:
    assert GOOD.problems() == []
    assert GOOD.valid == 10


def test_copies_are_told_but_are_no_problem() -> None:
    assert replace(GOOD, routes=replace(ROUTES, copies=5)).problems() == []


def test_a_lost_record_is_a_problem() -> None:
    routes = replace(ROUTES, lost=1, source=13)
    assert replace(GOOD, lines=13, routes=routes).problems() == [
        "1 records of the source are in no target topic"
    ]


def test_what_a_stop_left_to_do_is_not_lost() -> None:
    routes = replace(ROUTES, lost=3, source=15)
    stopped = replace(GOOD, lines=15, routes=routes, was_stopped=True)
    assert stopped.is_unfinished
    assert stopped.outstanding() == (
        "3 of 15 records are not routed yet, 0 routed flights are in no window yet"
    )
    assert not replace(GOOD, was_stopped=True).is_unfinished
    assert not replace(stopped, was_stopped=False).is_unfinished


def test_windows_that_a_stop_left_behind_are_unfinished() -> None:
    behind = replace(GOOD, windows=WindowTally(windows=1, flights=4, hours=[]), was_stopped=True)
    assert behind.is_unfinished
    assert behind.outstanding().endswith("6 routed flights are in no window yet")


def test_a_record_in_two_topics_is_a_problem() -> None:
    problems = replace(GOOD, routes=replace(ROUTES, strays=1)).problems()
    assert problems == ["1 records are in a target topic where they do not belong"]


def test_a_source_that_is_not_the_feed_is_a_problem() -> None:
    assert replace(GOOD, lines=13).problems() == [
        "the source topic holds 12 records, the feed has 13"
    ]


def test_a_wrong_reason_is_a_problem() -> None:
    reasons = {"not-json": 1, "empty": 1}
    problems = replace(GOOD, routes=replace(ROUTES, reasons=reasons)).problems()
    assert problems == [
        "rejected for other reasons than expected: empty 1 instead of 0; not-json 1 instead of 2"
    ]


def test_a_flight_that_is_in_no_window_is_a_problem() -> None:
    windows = WindowTally(windows=4, flights=9, hours=[])
    assert (
        replace(GOOD, windows=windows).problems()[0].startswith("the windows hold 9 flights of 10")
    )


def test_the_table_shows_a_sum_that_equals_the_source() -> None:
    console = Console(file=io.StringIO(), width=100)
    GOOD.show(console)
    assert isinstance(console.file, io.StringIO)
    rows = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["│", "sum", "│", "12", "│", "│"] in rows
    assert ["│", "records", "in", "the", "source", "│", "12", "│", "│"] in rows
    assert ["│", "flights.delayed", "│", "3", "│", "25.0%", "│"] in rows
