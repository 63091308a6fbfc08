"""What the pipeline says when counts do not add up."""

from __future__ import annotations

import io

from rich.console import Console

from spark_jobs.pipeline.count_check import Balance, Count

RIGHT = [
    Count("route", "flights.delayed", 3),
    Count("route", "sum", 12, 12),
    Count("archive", "flights in the archive", 1_234, 1_234),
]


def test_counts_that_are_what_they_must_be_are_no_problem() -> None:
    assert Balance(counts=list(RIGHT)).problems() == []


def test_a_count_that_is_not_is_a_problem_with_both_numbers() -> None:
    wrong = Count("archive", "flights in the archive", 1_233, 1_234)
    assert Balance(counts=[*RIGHT[:2], wrong]).problems() == [
        "archive: flights in the archive: 1,233 instead of 1,234"
    ]


def test_nothing_found_where_something_must_be_is_a_problem() -> None:
    assert not Count("route", "sum", 0, 1).is_right
    assert Count("route", "lost", 0, 0).is_right


def test_the_table_shows_each_count_beside_what_it_must_be() -> None:
    console = Console(file=io.StringIO(), width=100)
    balance = Balance(counts=[*RIGHT, Count("audit", "gaps", 2, 0)], seconds={"route": 12.34})
    balance.show(console)
    assert isinstance(console.file, io.StringIO)
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in console.file.getvalue().splitlines()
    ]
    assert ["route", "flights.delayed", "3", "", "", "12.3"] in rows
    assert ["", "sum", "12", "12", "=", ""] in rows
    assert ["archive", "flights in the archive", "1,234", "1,234", "=", "0.0"] in rows
    assert ["audit", "gaps", "2", "0", "WRONG", "0.0"] in rows
