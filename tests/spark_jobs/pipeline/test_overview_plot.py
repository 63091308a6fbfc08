"""The picture is drawn, from much data and from little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.pipeline import overview_plot
from spark_jobs.pipeline.tally import HourDelays

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n"


def _hours(months: range) -> list[HourDelays]:
    return [
        HourDelays(origin, month, hour, 100, 2, hour, 10 * hour, 98)
        for origin in ("EWR", "JFK", "LGA")
        for month in months
        for hour in range(5, 23)
    ]


@pytest.mark.parametrize("months", [range(1, 13), range(3, 4)], ids=["year", "month"])
def test_a_picture_is_written(months: range, tmp_path: Path) -> None:
    path = tmp_path / "new" / "delays.png"
    overview_plot.draw(_hours(months), path)
    assert path.read_bytes().startswith(PNG)


def test_no_windows_make_an_empty_picture_not_an_error(tmp_path: Path) -> None:
    overview_plot.draw([], tmp_path / "delays.png")
    assert (tmp_path / "delays.png").read_bytes().startswith(PNG)
