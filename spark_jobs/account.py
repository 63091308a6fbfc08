"""What the pipeline tells at its end: the tables of counts, and whatever does not add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from spark_jobs.route import REJECTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from spark_jobs.tally import RouteTally, WindowTally


@dataclass(frozen=True, slots=True)
class Account:
    """The counts of all topics, and what they should be."""

    lines: int
    """Lines of the feed: what the source topic should hold."""

    expected_reasons: Mapping[str, int]
    """Damaged lines of the feed by the reason to reject them for."""

    topics: Mapping[str, str]
    """Target topic of each route."""

    routes: RouteTally
    windows: WindowTally

    was_stopped: bool
    """Whether somebody ended the queries, which may then have had more to do."""

    @property
    def is_unfinished(self) -> bool:
        """Whether the queries were stopped before they had taken all in."""
        has_all = not self.routes.lost and self.windows.flights == self.valid
        return self.was_stopped and not has_all and not self.routes.strays

    def outstanding(self) -> str:
        """Say how much of the source was not processed yet."""
        missing = max(self.valid - self.windows.flights, 0)
        return (
            f"{self.routes.lost:,} of {self.routes.source:,} records are not routed yet, "
            f"{missing:,} routed flights are in no window yet"
        )

    @property
    def valid(self) -> int:
        """Flights that were not rejected."""
        return sum(self.routes.routed.values()) - self.routes.routed[REJECTED]

    def problems(self) -> list[str]:
        """Return a line for each count that is not what it must be."""
        routes, windows = self.routes, self.windows
        expected = self.expected_reasons
        wrong_reasons = "; ".join(
            f"{reason} {routes.reasons.get(reason, 0):,} instead of {expected.get(reason, 0):,}"
            for reason in self._reasons()
            if routes.reasons.get(reason, 0) != expected.get(reason, 0)
        )
        checks = {
            f"the source topic holds {routes.source:,} records, the feed has {self.lines:,}": (
                routes.source == self.lines
            ),
            f"{routes.lost:,} records of the source are in no target topic": not routes.lost,
            f"{routes.strays:,} records are in a target topic where they do not belong": (
                not routes.strays
            ),
            f"rejected for other reasons than expected: {wrong_reasons}": not wrong_reasons,
            f"the windows hold {windows.flights:,} flights of {self.valid:,}: "
            "the others came after the watermark had passed them": windows.flights == self.valid,
        }
        return [problem for problem, is_right in checks.items() if not is_right]

    def show(self, console: Console) -> None:
        """Print the tables."""
        console.print(self._routes_table())
        console.print(self._reasons_table())

    def _routes_table(self) -> Table:
        table = Table(title="Every record of the source, once", title_justify="left")
        table.add_column("topic")
        table.add_column("records", justify="right")
        table.add_column("share", justify="right")
        routed = self.routes.routed
        total = sum(routed.values())
        for route, count in routed.items():
            table.add_row(self.topics[route], f"{count:,}", f"{count / max(total, 1):.1%}")
        table.add_section()
        table.add_row("sum", f"{total:,}", "")
        table.add_row("records in the source", f"{self.routes.source:,}", "")
        table.add_row("copies after interruptions", f"{self.routes.copies:,}", "")
        table.add_section()
        table.add_row(
            f"flights in {self.windows.windows:,} windows", f"{self.windows.flights:,}", ""
        )
        return table

    def _reasons_table(self) -> Table:
        table = Table(title="Rejected, by reason", title_justify="left")
        for name in ("reason", "records", "expected"):
            table.add_column(name, justify="left" if name == "reason" else "right")
        for reason in self._reasons():
            found = self.routes.reasons.get(reason, 0)
            table.add_row(reason, f"{found:,}", f"{self.expected_reasons.get(reason, 0):,}")
        return table

    def _reasons(self) -> list[str]:
        return sorted({*self.routes.reasons, *self.expected_reasons})
