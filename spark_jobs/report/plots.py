"""Plots for a page that is read in light and in dark, as SVG: lines, bars and heat maps.

Each function draws into a figure in the colours of a `Theme`; `data_uri` has it drawn, and makes
an SVG of it whose background is transparent.
"""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from matplotlib.axes import Axes

WIDTH_INCHES = 8.6
ROW_INCHES = 0.34
SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "svg.fonttype": "path",
    "svg.hashsalt": "spark_jobs",
    "axes.unicode_minus": True,
}
MANY = 10_000
LABEL_CHARACTERS = 34
ALONE = timedelta(seconds=30)
"""What is shown around a point that is alone."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a plot."""

    ink: str
    faint: str
    grid: str
    empty: str
    series: tuple[str, ...]
    bad: str
    heat: str
    """Name of a colour map."""


LIGHT = Theme(
    ink="#1f2933",
    faint="#5f6c7b",
    grid="#e3e8ee",
    empty="#eef1f4",
    series=("#2f6db5", "#d1603d", "#2f8f6b", "#8757b0", "#a87b0a", "#52667a", "#c2417c", "#16808d"),
    bad="#c0392b",
    heat="YlOrRd",
)
DARK = Theme(
    ink="#e6edf3",
    faint="#9aa7b4",
    grid="#2c3642",
    empty="#222b35",
    series=("#79b0f2", "#f0936f", "#6bcaa2", "#c39be6", "#dfb84c", "#a3b4c5", "#f08bb9", "#5fc6d3"),
    bad="#ff7b6b",
    heat="inferno",
)

Points = list[tuple["datetime", float]]


def draw_lines(
    series: Sequence[tuple[str, Points]],
    label: str,
    theme: Theme,
    *,
    is_filled: bool = False,
    is_named: bool = False,
) -> Figure:
    """Draw a line for each series over time; a legend names them when there are several.

    `is_named` has one that is alone named too. Filled is only one that is alone: several would
    hide each other.
    """
    figure, axes = _frame(2.7, theme)
    for (name, points), colour in zip(series, _colours(theme, len(series)), strict=True):
        x, y = zip(*points, strict=True)
        mark = "o" if len(points) == 1 else None
        axes.plot(x, y, color=colour, linewidth=1.6, label=name, marker=mark)
        if is_filled and len(series) == 1:
            axes.fill_between(x, y, color=colour, alpha=0.22, linewidth=0)
    axes.set_ylim(0)
    is_nothing = not any(y for _, points in series for _, y in points)
    if is_nothing:  # not an axis of fractions that never were
        axes.set_ylim(0, 1)
    axes.margins(x=0.01)
    times = [at for _, points in series for at, _ in points]
    if min(times) == max(times):  # a line of no length: the axis needs one
        axes.set_xlim(min(times) - ALONE, max(times) + ALONE)  # type: ignore[arg-type]
    locator: Any = AutoDateLocator(maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.xaxis.get_offset_text().set_color(theme.faint)
    axes.yaxis.set_major_formatter(FuncFormatter(_short))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=is_nothing))
    axes.grid(axis="y", color=theme.grid, linewidth=0.8)
    axes.set_ylabel(label, color=theme.faint)
    if len(series) > 1 or is_named:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.01, 1.0),
            ncols=4,
            frameon=False,
            labelcolor=theme.ink,
            handlelength=1.2,
            borderaxespad=0.2,
        )
    return figure


def draw_bars(bars: Sequence[tuple[str, int]], label: str, theme: Theme, colour: str) -> Figure:
    """Draw a bar for each name, the first on top, with its number beside it."""
    figure, axes = _frame(0.8 + ROW_INCHES * len(bars), theme)
    places = range(len(bars))
    values = [value for _, value in bars]
    axes.barh(places, values, color=colour, height=0.62)
    for place, value in zip(places, values, strict=True):
        axes.annotate(
            f"{value:,}",
            (value, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=theme.ink,
        )
    axes.set_yticks(places, [_cut(name) for name, _ in bars], color=theme.ink)
    axes.set_xlim(0, max([*values, 1]) * 1.13)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(FuncFormatter(_short))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.grid(axis="x", color=theme.grid, linewidth=0.8)
    axes.set_xlabel(label, color=theme.faint)
    return figure


@dataclass(frozen=True, slots=True)
class Heat:
    """A table of numbers, some of which may be missing (NaN), to be shown by colour."""

    rows: list[str]
    columns: list[str]
    cells: list[list[float]]
    label: str
    words: Callable[[float], str]
    """How a number is written in its cell."""


def draw_heat(heat: Heat, theme: Theme) -> Figure:
    """Draw a cell for each number, with the number in it."""
    figure, axes = _frame(1.1 + 0.42 * len(heat.rows), theme)
    found = [cell for row in heat.cells for cell in row if not math.isnan(cell)]
    top = max(found, default=1) or 1
    axes.imshow(heat.cells, cmap=theme.heat, vmin=0, vmax=top, aspect="auto")
    axes.set_facecolor(theme.empty)
    colours = mpl.colormaps[theme.heat]
    for row, cells in enumerate(heat.cells):
        for column, cell in enumerate(cells):
            if not math.isnan(cell):
                ink = _ink_on(colours(cell / top))
                axes.text(
                    column, row, heat.words(cell), ha="center", va="center", color=ink, fontsize=7.5
                )
    axes.set_xticks(range(len(heat.columns)), heat.columns)
    axes.set_yticks(range(len(heat.rows)), [_cut(row) for row in heat.rows], color=theme.ink)
    axes.set_xlabel(heat.label, color=theme.faint)
    return figure


def data_uri(draw: Callable[[Theme], Figure], theme: Theme) -> str:
    """Return what `draw` draws as a link that holds the whole SVG: the same for the same."""
    target = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        draw(theme).savefig(
            target, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
        )
    return "data:image/svg+xml;base64," + base64.b64encode(target.getvalue()).decode()


def _frame(height: float, theme: Theme) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH_INCHES, height))
    axes = figure.add_subplot()
    axes.spines[:].set_visible(False)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=theme.faint, pad=5)
    return figure, axes


def _colours(theme: Theme, count: int) -> list[str]:
    return [theme.series[index % len(theme.series)] for index in range(count)]


def _short(value: float, _place: object = None) -> str:
    if value >= 1_000_000:  # noqa: PLR2004 - a million is one everywhere
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= MANY else f"{value:,.10g}"


def _cut(name: str) -> str:
    return name if len(name) <= LABEL_CHARACTERS else name[: LABEL_CHARACTERS - 1] + "…"


def _ink_on(colour: tuple[float, float, float, float]) -> str:
    red, green, blue, _ = colour
    is_bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55  # noqa: PLR2004 - as seen
    return "#1a1a1a" if is_bright else "#ffffff"
