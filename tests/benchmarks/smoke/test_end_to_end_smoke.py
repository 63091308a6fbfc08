"""The benchmark itself runs: every row, tiny, on one broker. No number is asserted."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import end_to_end
from tests.benchmarks.measurement import performance_tools

if TYPE_CHECKING:
    from pathlib import Path

PRODUCER_OUTPUT = """\
100 records sent, 90.5 records/sec (0.10 MB/sec), 2.0 ms avg latency, 3.0 ms max latency.
500 records sent, 250.25 records/sec (1.50 MB/sec), 2.0 ms avg latency, 3.0 ms max latency, 1 ms.
"""
CONSUMER_OUTPUT = "2026-01-01 10:00:00:000, x, 9.5, 4.0, 500, 210.0, 100, 2000, 4.75, 250.0\n"


QUICK = ["produce-100", "consume-1k", "canned-produce-16", "canned-fetch-16"]
"""Rows that every test run measures: tools of Java, and the client in C. All take minutes."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("chosen", [QUICK, pytest.param([], marks=pytest.mark.slow, id="all")])
def test_smoke_run_measures_every_row(tmp_path: Path, chosen: list[str]) -> None:
    make = "--only-apache" if os.environ.get("AGAINST") == "apache" else "--only-ours"
    only = ["--rows", *chosen] if chosen else []

    reports = end_to_end.main(["--smoke", make, *only, "--output", str(tmp_path)])

    others = [rows(is_smoke=True) for rows in end_to_end.OWN_BROKERS.values()]
    every = len(end_to_end.ROWS) + sum(len(rows.reports) for rows in others)
    assert len(reports) == (len(chosen) or every) + 3
    assert all(row.cells()[2:4] != ("-", "-") for row in reports)
    written = json.loads((tmp_path / "end_to_end.json").read_text())
    assert [row["row"] for row in written["rows"]] == [row.name for row in reports]
    assert (tmp_path / "end_to_end.md").read_text().count("\n") == len(reports) + 4


def test_producer_summary_is_the_one_of_all_records() -> None:
    reached = performance_tools.produced(PRODUCER_OUTPUT, 500)

    assert reached == performance_tools.Throughput(500, 250.25, 1.5)


def test_missing_records_are_an_error() -> None:
    with pytest.raises(performance_tools.PerformanceToolError):
        performance_tools.produced(PRODUCER_OUTPUT, 501)
    with pytest.raises(performance_tools.PerformanceToolError):
        performance_tools.consumed(CONSUMER_OUTPUT, 501)


def test_consumer_throughput_leaves_the_rebalance_out() -> None:
    reached = performance_tools.consumed(CONSUMER_OUTPUT, 500)

    assert reached == performance_tools.Throughput(500, 250.0, 4.75)
