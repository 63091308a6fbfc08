"""The picture: how delays build up over the day, at each airport and over the year."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from spark_jobs.flights.flights import ORIGINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.gridspec import SubplotSpec
    from matplotlib.image import AxesImage

    from spark_jobs.pipeline.tally import HourDelays

HOURS = range(5, 24)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NAMES = {"EWR": "Newark", "JFK": "John F. Kennedy", "LGA": "LaGuardia"}
COLOURS = {"EWR": "#4363a8", "JFK": "#d1603d", "LGA": "#3f8f6b"}
INK, FAINT, EMPTY = "#2b2b2b", "#7a7a7a", "#f3f3f3"
FEWEST_FLIGHTS = 30
"""A share or mean of fewer flights says nothing and is left blank."""

HOTTEST_MINUTES = 50

FORMATS = sorted(FigureCanvasBase.get_supported_filetypes())
"""What a file's name may end in."""

Ratios = dict[tuple[str, int, int], float]
"""By airport, month and hour; month 0 is the year."""


def draw(hours: Iterable[HourDelays], path: Path) -> None:
    """Write the picture as PNG; the directory is made when it is not there."""
    hours = list(hours)
    late = _sums(hours, lambda hour: (hour.delayed, hour.flights))
    minutes = _sums(hours, lambda hour: (hour.dep_delay_sum, hour.dep_delay_count))
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 10, "text.color": INK}):
        figure = Figure(figsize=(11, 8.2), dpi=120, facecolor="white")
        rows = figure.add_gridspec(
            2,
            1,
            height_ratios=(1.05, 1),
            hspace=0.42,
            left=0.065,
            right=0.93,
            top=0.84,
            bottom=0.07,
        )
        _draw_lines(figure.add_subplot(rows[0]), late)
        _draw_maps(figure, rows[1], minutes)
        flights = sum(hour.flights for hour in hours)
        figure.text(0.065, 0.95, "Delays build up over the day", fontsize=18, weight="bold")
        figure.text(
            0.065,
            0.915,
            f"{flights:,} flights from New York City in 2013, in hourly windows "
            "made by Spark from the topic flights",
            color=FAINT,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _sums(hours: list[HourDelays], parts: Callable[[HourDelays], tuple[int, int]]) -> Ratios:
    """Return numerator / denominator by airport, month (0: the year) and hour."""
    sums: dict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for hour in hours:
        above, below = parts(hour)
        for month in (0, hour.month):
            cell = sums[hour.origin, month, hour.hour]
            cell[0] += above
            cell[1] += below
    return {
        place: above / below for place, (above, below) in sums.items() if below >= FEWEST_FLIGHTS
    }


def _draw_lines(axes: Axes, late: Ratios) -> None:
    ends = []
    for origin in ORIGINS:
        points = [(hour, late[origin, 0, hour]) for hour in HOURS if (origin, 0, hour) in late]
        if not points:
            continue
        axes.plot(*zip(*points, strict=True), color=COLOURS[origin], linewidth=2.4)
        ends.append((points[-1], origin))
    for (hour, share), origin in _spread(ends):
        axes.text(
            hour + 0.2, share, NAMES[origin], color=COLOURS[origin], weight="bold", va="center"
        )
    axes.set_title(
        "Share of flights that arrived 15 or more minutes late, or were diverted", loc="left"
    )
    axes.set_xlim(HOURS[0] - 0.3, HOURS[-1] + 2.6)
    axes.set_ylim(0)
    axes.set_xticks(list(HOURS[::2]), [f"{hour}:00" for hour in HOURS[::2]])
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("scheduled hour of departure, local", color=FAINT)
    axes.grid(axis="y", color="#e6e6e6")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelcolor=FAINT, pad=6)


def _spread(
    ends: list[tuple[tuple[int, float], str]], gap: float = 0.03
) -> list[tuple[tuple[int, float], str]]:
    """Move labels apart that would overlap."""
    spread: list[tuple[tuple[int, float], str]] = []
    for (hour, share), origin in sorted(ends, key=lambda end: end[0][1]):
        lowest = spread[-1][0][1] + gap if spread else share
        spread.append(((hour, max(share, lowest)), origin))
    return spread


def _draw_maps(figure: Figure, grid: SubplotSpec, minutes: Ratios) -> None:
    columns = grid.subgridspec(1, len(ORIGINS), wspace=0.06)
    for column, origin in enumerate(ORIGINS):
        axes = figure.add_subplot(columns[column])
        cells = [
            [minutes.get((origin, month, hour), math.nan) for hour in HOURS]
            for month in range(1, len(MONTHS) + 1)
        ]
        image = axes.imshow(cells, cmap="YlOrRd", vmin=0, vmax=HOTTEST_MINUTES, aspect="auto")
        axes.set_facecolor(EMPTY)
        axes.set_title(NAMES[origin], loc="left", color=COLOURS[origin], weight="bold")
        axes.set_xticks(range(1, len(HOURS), 4), [f"{hour}:00" for hour in HOURS[1::4]])
        axes.set_yticks(range(len(MONTHS)), MONTHS if column == 0 else [""] * len(MONTHS))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelcolor=FAINT)
        if column == len(ORIGINS) - 1:
            _draw_scale(figure, axes, image)


def _draw_scale(figure: Figure, axes: Axes, image: AxesImage) -> None:
    box = axes.get_position()
    scale = figure.colorbar(image, cax=figure.add_axes((box.x1 + 0.01, box.y0, 0.012, box.height)))
    scale.outline.set_visible(False)
    scale.ax.tick_params(length=0, labelcolor=FAINT)
    scale.set_label("mean departure delay, minutes", color=FAINT)
