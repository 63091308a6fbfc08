"""The report's page: numbers in, one HTML file out that needs nothing beside itself.

Each part has a sentence that says what is to be seen, a plot drawn twice, for light and for dark
screens, whose alternative text holds the main numbers, and the numbers themselves as a table.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from spark_jobs import report
from spark_jobs.report.plots import DARK, LIGHT, Heat, data_uri, draw_bars, draw_heat, draw_lines
from spark_jobs.report.report_numbers import largest, overlapping

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from matplotlib.figure import Figure

    from spark_jobs.report.plots import Theme
    from spark_jobs.report.report_numbers import ReportNumbers, Throughput, WindowNumbers

TEMPLATE = "report.html.jinja"
HOURS = 24
MOST_LINES = 8
"""In one plot: as many as there are colours."""

SECONDS = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture in both themes, and what it says to those who do not see it."""

    alt: str
    light: str
    dark: str

    @classmethod
    def of(cls, alt: str, draw: Callable[[Theme], Figure]) -> Plot:
        """Draw it twice."""
        return cls(alt, data_uri(draw, LIGHT), data_uri(draw, DARK))


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers, as text; the columns after the first `labels` are right-aligned."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int = 1
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page."""

    anchor: str
    title: str
    words: str
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = field(default_factory=list)


def render(numbers: ReportNumbers) -> str:
    """Return the page."""
    makers = (_event_times, _append_times, _jobs, _groups, _windows, _rejects)
    environment = Environment(
        loader=PackageLoader(report.__name__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    parts = [part for make in makers if (part := make(numbers)) is not None]
    page: str = environment.get_template(TEMPLATE).render(
        numbers=numbers, made_at=_second(numbers.made_at), tiles=_tiles(numbers), parts=parts
    )
    return page


def _tiles(numbers: ReportNumbers) -> list[tuple[str, str]]:
    total = numbers.valid + numbers.rejected
    share = numbers.rejected / total if total else 0
    tiles = [
        (f"{total:,}", f"records in {numbers.source}"),
        (f"{numbers.rejected:,}", f"of them break a rule ({share:.2%})"),
    ]
    if numbers.windows is not None:
        words = f"windows of {numbers.windows.granularity} in {numbers.windows.topic}"
        tiles.append((f"{numbers.windows.windows:,}", words))
    if numbers.jobs:
        lag = sum(job.batches[-1].lag for job in numbers.jobs)
        tiles.append((f"{lag:,}", f"records that {len(numbers.jobs)} queries have yet to take"))
    if numbers.groups:
        lag = sum(group.lag for group in numbers.groups)
        names = {group.group for group in numbers.groups}
        tiles.append((f"{lag:,}", f"records that {len(names)} consumer groups have yet to take"))
    return tiles


def _event_times(numbers: ReportNumbers) -> Part | None:
    series = numbers.by_event_time
    if series is None or not series.points:
        return None
    return Part(
        "event-time",
        "Throughput by event time",
        f"Valid records of {numbers.source} by when they happened, per {series.bucket.word}, UTC.",
        [_throughput_plot([series])],
        [_throughput_table([series], f"Valid records per {series.bucket.word}")],
    )


def _append_times(numbers: ReportNumbers) -> Part | None:
    if not numbers.topics:
        return None
    groups = overlapping(numbers.by_append_time)
    facts = Table(
        "Topics",
        ("topic", "partitions", "records", "MB", "first timestamp", "last timestamp"),
        [
            (
                *(topic.topic, f"{topic.partitions:,}", f"{topic.records:,}"),
                *(f"{topic.value_bytes / 1e6:,.1f}", _second(topic.first), _second(topic.last)),
            )
            for topic in numbers.topics
        ],
        is_open=True,
    )
    return Part(
        "append-time",
        "Throughput by append time",
        "Records by their timestamp in the topic: when they were written, unless who produced "
        "them said otherwise. Topics of other times have plots of their own.",
        [
            _throughput_plot(largest(group, MOST_LINES), is_named=len(groups) > 1)
            for group in groups
        ],
        [facts, *(_throughput_table(group, _span(group)) for group in groups)],
    )


def _span(series: Sequence[Throughput]) -> str:
    first = min(one.points[0][0] for one in series)
    last = max(one.points[-1][0] for one in series)
    return f"Records per {series[0].bucket.word}, {_second(first)} to {_second(last)}"


def _throughput_plot(series: Sequence[Throughput], *, is_named: bool = False) -> Plot:
    word = series[0].bucket.word
    names = "; ".join(f"{s.name} {s.records:,}" for s in series)
    top = max((point[1], point[0]) for one in series for point in one.points)
    alt = f"{_span(series)} UTC: {names}. At most {top[0]:,} per {word}, at {_second(top[1])}."
    lines = [(one.name, [(at, float(count)) for at, count in one.points]) for one in series]
    return Plot.of(
        alt,
        lambda theme: draw_lines(
            lines, f"records per {word}", theme, is_filled=True, is_named=is_named
        ),
    )


def _throughput_table(series: Sequence[Throughput], caption: str) -> Table:
    counts = {one.name: dict(one.points) for one in series}
    times = sorted({at for points in counts.values() for at in points})
    rows = [
        (_second(at), *(f"{points.get(at, 0):,}" for points in counts.values())) for at in times
    ]
    total = ("sum", *(f"{one.records:,}" for one in series))
    return Table(caption, ("begin, UTC", *counts), [*rows, total])


def _jobs(numbers: ReportNumbers) -> Part | None:
    if not numbers.jobs:
        return None
    lags = [(job.query, [(b.at, float(b.lag)) for b in job.batches]) for job in numbers.jobs]
    rates = [(job.query, [(b.at, b.rate) for b in job.batches]) for job in numbers.jobs]
    sums = {job.query: sum(batch.rows for batch in job.batches) for job in numbers.jobs}
    most = {job.query: max(batch.lag for batch in job.batches) for job in numbers.jobs}
    table = Table(
        "Queries",
        ("query", "batches", "records", "fastest, records/s", "most lag", "last lag", "too late"),
        [
            (
                *(job.query, f"{len(job.batches):,}", f"{sums[job.query]:,}"),
                f"{max(batch.rate for batch in job.batches):,.0f}",
                *(f"{most[job.query]:,}", f"{job.batches[-1].lag:,}", f"{job.dropped:,}"),
            )
            for job in numbers.jobs
        ],
        is_open=True,
    )
    lag_alt = "Lag after each batch. Most and last: " + "; ".join(
        f"{job.query} {most[job.query]:,}, {job.batches[-1].lag:,}" for job in numbers.jobs
    )
    rate_alt = "Records per second of each batch. In all: " + "; ".join(
        f"{query} {rows:,} records" for query, rows in sums.items()
    )
    return Part(
        "jobs",
        "Jobs: lag and rate",
        "From the jobs' files of metrics, batch by batch: records that were there and not taken "
        "when the batch ended, and how fast it took its records.",
        [
            Plot.of(f"{lag_alt}.", lambda theme: draw_lines(lags, "lag, records", theme)),
            Plot.of(f"{rate_alt}.", lambda theme: draw_lines(rates, "records per second", theme)),
        ],
        [table],
    )


def _groups(numbers: ReportNumbers) -> Part | None:
    if not numbers.groups:
        return None
    sums: dict[str, int] = {}
    for one in numbers.groups:
        name = f"{one.group}: {one.topic}"
        sums[name] = sums.get(name, 0) + one.lag
    alt = "Lag by group and topic: " + "; ".join(f"{name} {lag:,}" for name, lag in sums.items())
    table = Table(
        "Consumer groups",
        ("group", "topic", "partition", "committed", "end", "lag"),
        [
            (g.group, g.topic, *(f"{n:,}" for n in (g.partition, g.committed, g.end, g.lag)))
            for g in numbers.groups
        ],
        labels=2,
    )
    bars = list(sums.items())
    return Part(
        "groups",
        "Consumer groups: lag",
        "Records that a group has not committed yet, now.",
        [Plot.of(f"{alt}.", lambda theme: draw_bars(bars, "lag, records", theme, theme.series[0]))],
        [table],
    )


def _windows(numbers: ReportNumbers) -> Part | None:
    windows = numbers.windows
    if windows is None or not windows.shares:
        return None
    words = functools.partial(_measure, windows)
    found = {(one.group, one.hour): one.ratio for one in windows.shares}
    groups = sorted({one.group for one in windows.shares})
    heat = Heat(
        rows=groups,
        columns=[str(hour) for hour in range(HOURS)],
        cells=[[found.get((g, hour), math.nan) for hour in range(HOURS)] for g in groups],
        label=f"hour of the day, {windows.zone}",
        words=lambda value: f"{100 * value:.0f}" if windows.is_share else f"{value:.3g}",
    )
    most = max(windows.shares, key=lambda one: one.ratio)
    alt = (
        f"{windows.label} by {windows.group_label} and hour of the day. Most: "
        f"{words(most.ratio)}, {most.group} at {most.hour}:00."
    )
    table = Table(
        windows.label,
        (windows.group_label, "hour", "above", "below", "measure"),
        [
            (s.group, str(s.hour), f"{s.above:,.10g}", f"{s.below:,.10g}", words(s.ratio))
            for s in sorted(windows.shares, key=lambda s: (s.group, s.hour))
        ],
    )
    return Part(
        "windows",
        f"Windows: {windows.label}",
        f"From {windows.windows:,} windows of {windows.granularity} in {windows.topic}, each in "
        f"its last version{', in percent' if windows.is_share else ''}.",
        [Plot.of(alt, lambda theme: draw_heat(heat, theme))],
        [table],
    )


def _measure(windows: WindowNumbers, value: float) -> str:
    return f"{value:.1%}" if windows.is_share else f"{value:,.4g}"


def _rejects(numbers: ReportNumbers) -> Part | None:
    if not numbers.reasons:
        return None
    bars = sorted(numbers.reasons.items(), key=lambda item: (-item[1], item[0]))
    alt = "Rejects by reason: " + "; ".join(f"{reason} {count:,}" for reason, count in bars)
    rows = [(reason, f"{count:,}") for reason, count in bars]
    total = ("sum", f"{sum(numbers.reasons.values()):,}")
    return Part(
        "rejects",
        "Rejects by reason",
        f"Records in {numbers.rejects_topic}, each counted once.",
        [Plot.of(f"{alt}.", lambda theme: draw_bars(bars, "records", theme, theme.bad))],
        [Table("Rejects by reason", ("reason", "records"), [*rows, total])],
    )


def _second(at: datetime) -> str:
    return at.strftime(SECONDS)
