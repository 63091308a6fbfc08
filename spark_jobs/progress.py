"""How far queries are: a line each on the terminal, and a line of JSON per batch in a file.

What Spark reports of a batch is boiled down to a `BatchReport`. Lag is counted in records per
partition: what the topic held at the end of the batch that the batch did not take.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from spark_jobs.places import require_file, writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One batch of one query, as a line of the metrics file."""

    query: str
    batch: int
    at: str
    """Begin of the batch, UTC."""

    rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    duration_ms: int
    lag: Mapping[str, int]
    """Records by `topic-partition` that were there and are not taken yet."""

    watermark: str | None
    """Event time up to which windows are complete; None without windows."""

    state_rows: int
    """Rows that stateful steps remember."""

    dropped_by_watermark: int
    """Rows that came too late for their window."""

    is_done: bool = True
    """Whether a batch ran; otherwise it was only looked for."""

    @property
    def total_lag(self) -> int:
        """Records not taken yet, of all partitions."""
        return sum(self.lag.values())

    def line(self) -> dict[str, Any]:
        """Return the report as an object of the metrics file."""
        values = asdict(self)
        del values["is_done"]
        return values

    @classmethod
    def of(cls, query: str, progress: StreamingQueryProgress) -> BatchReport:
        """Boil Spark's report down."""
        states = progress.stateOperators
        return cls(
            query=query,
            batch=progress.batchId,
            at=progress.timestamp,
            rows=progress.numInputRows,
            input_rows_per_second=_rate(progress.inputRowsPerSecond),
            processed_rows_per_second=_rate(progress.processedRowsPerSecond),
            duration_ms=progress.batchDuration,
            lag=_lag([(s.endOffset, s.latestOffset) for s in progress.sources]),
            watermark=progress.eventTime.get("watermark"),
            state_rows=sum(state.numRowsTotal for state in states),
            dropped_by_watermark=sum(state.numRowsDroppedByWatermark for state in states),
            is_done="addBatch" in progress.durationMs,
        )


def _rate(value: float) -> float:
    return round(value, 1) if value == value and abs(value) != float("inf") else 0.0  # noqa: PLR0124


def _lag(sources: Sequence[tuple[str, str]]) -> dict[str, int]:
    lag = {}
    for end, latest in sources:
        taken, there = _offsets(end), _offsets(latest)
        for topic, partitions in there.items():
            for partition, offset in partitions.items():
                behind = offset - taken.get(topic, {}).get(partition, 0)
                lag[f"{topic}-{partition}"] = max(behind, 0)
    return lag


def _offsets(text: str | None) -> dict[str, dict[str, int]]:
    try:
        found: Any = json.loads(text or "{}")
    except ValueError:  # a source other than Kafka's
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class Followed:
    """What is known of one query."""

    rows: int = 0
    """Rows of all batches so far."""

    dropped: int = 0
    """Rows that came too late for their window."""

    batch: int = -1
    """The last batch that is counted."""

    last: BatchReport | None = None
    """The last report, of a batch or of a look for new records that found none."""

    def take(self, report: BatchReport) -> bool:
        """Take in a report; return whether it is of a batch that was not counted yet.

        While there is nothing new, Spark reports the batch to come again and again.
        """
        self.last = report
        if not report.is_done or report.batch <= self.batch:
            return False
        self.batch = report.batch
        self.rows += report.rows
        self.dropped += report.dropped_by_watermark
        return True


class Follower:
    """Notes the progress of queries, shows it, and writes it down."""

    def __init__(self, queries: Sequence[StreamingQuery], metrics: Path | None) -> None:
        if metrics is not None:
            require_file("--metrics", metrics)
        self._queries = queries
        self._metrics = metrics
        self._followed = {query.name: Followed() for query in queries}
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._tasks = {
            query.name: self._progress.add_task(query.name, words="starting") for query in queries
        }

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        for name, followed in self._followed.items():
            if followed.dropped:
                words = "rows came too late for their windows and are left out"
                print(f"{name}: {followed.dropped:,} {words}", file=sys.stderr)

    def rows(self) -> dict[str, int]:
        """Return the rows that each query has read."""
        return {name: followed.rows for name, followed in self._followed.items()}

    def look(self) -> None:
        """Take in what the queries report since the last look."""
        for query in self._queries:
            followed = self._followed[query.name]
            if _is_known(followed.last, query.lastProgress):
                continue
            for progress in query.recentProgress:
                report = BatchReport.of(query.name, progress)
                if followed.take(report):
                    self._note(report)
            words = _words(followed, followed.last)
            self._progress.update(self._tasks[query.name], words=words)

    def _note(self, report: BatchReport) -> None:
        if self._metrics is not None:
            with (
                writing("--metrics", self._metrics),
                self._metrics.open("a", encoding="utf-8") as file,
            ):
                file.write(json.dumps(report.line()) + "\n")


def _is_known(last: BatchReport | None, progress: StreamingQueryProgress | None) -> bool:
    """Say whether there is nothing new, which spares taking all recent reports out of the JVM."""
    if last is None or progress is None:
        return progress is None
    return (last.batch, last.at) == (progress.batchId, progress.timestamp)


def _words(followed: Followed, last: BatchReport | None) -> str:
    if last is None:
        return "starting"
    words = [
        f"{followed.rows:,} records",
        f"in {last.input_rows_per_second:,.0f}/s",
        f"done {last.processed_rows_per_second:,.0f}/s",
        f"lag {last.total_lag:,}",
    ]
    behind = sorted(last.lag.items(), key=lambda item: -item[1])[:3]
    if last.total_lag:
        words.append("(" + ", ".join(f"{name}: {lag:,}" for name, lag in behind if lag) + ")")
    if last.watermark:
        words.append(f"watermark {last.watermark}")
    if followed.dropped:
        words.append(f"too late {followed.dropped:,}")
    return "  ".join(words)
