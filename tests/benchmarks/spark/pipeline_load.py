"""Verdict on whether a stream keeps up, from samples of a long run.

A run is bounded when, once it is warm, it takes in as much as is produced, and the backlog of
records does not grow. Batches make the backlog a saw tooth, so its peaks are compared: those of the
last third of the run must not stand out above those of the third before by more than a few seconds
of what is produced. Memory is told, and not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

KEEPS_RATE = 0.95
"""Least share of the wanted rate that producer and job must reach."""

PEAK_GROWTH = 1.25
PEAK_SLACK_SECONDS = 2.0
LEAST_SAMPLES = 6


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a run at one moment."""

    seconds: float
    """Since the begin of the run."""

    produced: int
    """Records that the topic holds."""

    taken: int
    """Records of them in batches that are committed, by the query that is furthest behind."""

    broker_cpu_seconds: float
    job_cpu_seconds: float
    producer_cpu_seconds: float
    broker_megabytes: float
    job_megabytes: float

    @property
    def lag(self) -> int:
        """Records not taken yet, those of the batch under way included."""
        return self.produced - self.taken


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on the samples of a run."""

    wanted_rate: int
    produced_rate: float
    """Records a second, over the last two thirds."""

    taken_rate: float
    middle_peak: int
    """Most lag in the middle third."""

    last_peak: int
    """Most lag in the last third."""

    @property
    def keeps_rate(self) -> bool:
        """Return whether the wanted rate was produced and taken in."""
        return min(self.produced_rate, self.taken_rate) >= KEEPS_RATE * self.wanted_rate

    @property
    def is_lag_bounded(self) -> bool:
        """Return whether the lag has stopped growing."""
        slack = PEAK_SLACK_SECONDS * self.wanted_rate
        return self.last_peak <= PEAK_GROWTH * self.middle_peak + slack

    def words(self) -> str:
        """Return a line for people."""
        rates = f"produced {self.produced_rate:,.0f}/s, taken {self.taken_rate:,.0f}/s"
        lags = f"most lag {self.middle_peak:,} in the middle third, {self.last_peak:,} in the last"
        seconds = self.last_peak / self.wanted_rate
        return (
            f"{rates} of {self.wanted_rate:,}/s wanted: the rate is "
            f"{'kept' if self.keeps_rate else 'NOT kept'}; {lags} ({seconds:.1f} s of events): "
            f"the lag is {'bounded' if self.is_lag_bounded else 'NOT bounded'}"
        )


def verdict(samples: Sequence[Sample], wanted_rate: int) -> Verdict:
    """Judge a run by its last two thirds; the first is for warming up."""
    if len(samples) < LEAST_SAMPLES:
        raise ValueError(f"{len(samples)} samples are too few, {LEAST_SAMPLES} are needed")
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    first, final = middle[0], last[-1]
    seconds = final.seconds - first.seconds
    return Verdict(
        wanted_rate,
        (final.produced - first.produced) / seconds,
        (final.taken - first.taken) / seconds,
        max(sample.lag for sample in middle),
        max(sample.lag for sample in last),
    )


def table_of(samples: Sequence[Sample], title: str) -> Table:
    """Return rates, lag and use of processor and memory over time."""
    table = Table(title=title)
    headings = ("second", "produced/s", "taken/s", "lag", "CPU %: broker", "job", "producer")
    for heading in (*headings, "MB: broker", "job"):
        table.add_column(heading, justify="right")
    for before, sample in pairwise(samples):
        table.add_row(*_cells(before, sample))
    return table


def _cells(before: Sample, sample: Sample) -> list[str]:
    seconds = sample.seconds - before.seconds
    cpu = (
        sample.broker_cpu_seconds - before.broker_cpu_seconds,
        sample.job_cpu_seconds - before.job_cpu_seconds,
        sample.producer_cpu_seconds - before.producer_cpu_seconds,
    )
    return [
        f"{sample.seconds:,.0f}",
        f"{(sample.produced - before.produced) / seconds:,.0f}",
        f"{(sample.taken - before.taken) / seconds:,.0f}",
        f"{sample.lag:,}",
        *(f"{100 * used / seconds:.0f}" for used in cpu),
        f"{sample.broker_megabytes:,.0f}",
        f"{sample.job_megabytes:,.0f}",
    ]
