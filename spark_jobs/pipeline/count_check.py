"""What the jobs of the pipeline came to: counts, what they must be, and what does not add up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Count:
    """A number that a job came to."""

    job: str
    what: str
    found: int
    expected: int | None = None
    """What it must be, by another way of counting; None when nothing else tells."""

    @property
    def is_right(self) -> bool:
        """Whether it is what it must be."""
        return self.expected is None or self.found == self.expected


@dataclass(slots=True)
class Balance:
    """All counts of a run, in order."""

    counts: list[Count] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each job took."""

    def problems(self) -> list[str]:
        """Return a line for each count that is not what it must be."""
        return [
            f"{count.job}: {count.what}: {count.found:,} instead of {count.expected:,}"
            for count in self.counts
            if not count.is_right
        ]

    def found(self, job: str) -> list[Count]:
        """Return what a job came to."""
        return [count for count in self.counts if count.job == job]

    def show(self, console: Console) -> None:
        """Print the table, with a section for each job."""
        table = Table(title="What the jobs came to", title_justify="left")
        table.add_column("job")
        table.add_column("")
        for name in ("records", "must be"):
            table.add_column(name, justify="right")
        table.add_column("")
        table.add_column("s", justify="right")
        for job in dict.fromkeys(count.job for count in self.counts):
            table.add_section()
            for place, count in enumerate(self.found(job)):
                expected = "" if count.expected is None else f"{count.expected:,}"
                mark = "" if count.expected is None else "=" if count.is_right else "WRONG"
                first = (job, f"{self.seconds.get(job, 0):.1f}") if place == 0 else ("", "")
                table.add_row(first[0], count.what, f"{count.found:,}", expected, mark, first[1])
        console.print(table)
