"""Medians of what was measured, as a table on the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from rich.table import Table

from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.support.jars import KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from rich.console import Console

    from tests.benchmarks.measurement.rows import Result

HEADINGS = (
    "row",
    "unit",
    "ours",
    f"Apache {KAFKA_4}",
    "ours / Apache",
    "wanted",
    "MB/s",
    "broker CPU s",
    "CPU ratio",
)
NOTHING = "-"


@dataclass(slots=True)
class RowReport:
    """All measurements of one row, by make."""

    name: str
    unit: str
    target: str
    results: dict[str, list[Result]] = field(default_factory=lambda: defaultdict(list))

    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Turns whose tool failed, by make; they were run again."""

    def median_of(self, make: str, of: Callable[[Result], float | None]) -> float | None:
        """Return the median over the rounds, or None where nothing was measured."""
        values = [value for result in self.results[make] if (value := of(result)) is not None]
        return median(values) if values else None

    def cells(self) -> tuple[str, ...]:
        """Return the row's cells, one per heading."""
        ours, apache = (self.median_of(make, lambda result: result.value) for make in BOTH)
        megabytes = [self.median_of(make, lambda r: r.megabytes_per_second) for make in BOTH]
        cpu = [self.median_of(make, lambda r: r.cpu_seconds) for make in BOTH]
        failed = "".join(f" ({count} failed: {make})" for make, count in self.failures.items())
        return (
            self.name + failed,
            self.unit,
            _number(ours),
            _number(apache),
            _ratio(ours, apache),
            self.target,
            _pair(megabytes),
            _pair(cpu),
            _ratio(*cpu),
        )

    def as_json(self) -> dict[str, object]:
        """Return medians and every single measurement."""
        makes = {
            make: {
                "median": self.median_of(make, lambda result: result.value),
                "cpu_seconds": self.median_of(make, lambda result: result.cpu_seconds),
                "megabytes_per_second": self.median_of(make, lambda r: r.megabytes_per_second),
                "rounds": [result.value for result in results],
                "failed_turns": self.failures.get(make, 0),
            }
            for make, results in self.results.items()
        }
        return {"row": self.name, "unit": self.unit, "target": self.target, "brokers": makes}


BOTH = (OURS, APACHE)


def show(reports: Iterable[RowReport], console: Console, title: str) -> None:
    """Print the table."""
    table = Table(title=title)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in {"row", "unit"} else "right")
    for report in reports:
        table.add_row(*report.cells())
    console.print(table)


def write(reports: list[RowReport], directory: Path, title: str, name: str = "end_to_end") -> None:
    """Write `NAME.md` and `NAME.json` into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [title, "", _markdown_row(HEADINGS), _markdown_row(["---"] * len(HEADINGS))]
    lines += [_markdown_row(report.cells()) for report in reports]
    (directory / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    content = {"title": title, "rows": [report.as_json() for report in reports]}
    (directory / f"{name}.json").write_text(json.dumps(content, indent=2), encoding="utf-8")


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _ratio(ours: float | None, apache: float | None) -> str:
    return f"{ours / apache:.2f}" if ours is not None and apache else NOTHING


def _pair(values: list[float | None]) -> str:
    return " : ".join(_number(value) for value in values)
