"""How far queries are: a line each on the terminal, and a line of JSON per batch in a file.

What Spark reports of a batch is boiled down to a `BatchReport`. Lag is counted in records per
partition: what the topic held at the end of the batch that the batch did not take.

Reports are taken out of the JVM as JSON. PySpark's own `lastProgress` and `recentProgress` ask it
for each number by itself, and through exceptions for each end of a list: 60 milliseconds of
processor time a report, two seconds for the hundred that Spark keeps.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from spark_jobs.paths import require_file, writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
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
    def of(cls, query: str, progress: Mapping[str, Any]) -> BatchReport:
        """Boil Spark's report down, which leaves out what is no number or not there."""
        states = progress["stateOperators"]
        return cls(
            query=query,
            batch=progress["batchId"],
            at=progress["timestamp"],
            rows=progress["numInputRows"],
            input_rows_per_second=_rate(progress.get("inputRowsPerSecond")),
            processed_rows_per_second=_rate(progress.get("processedRowsPerSecond")),
            duration_ms=progress["batchDuration"],
            lag=_lag(progress["sources"]),
            watermark=progress.get("eventTime", {}).get("watermark"),
            state_rows=sum(state["numRowsTotal"] for state in states),
            dropped_by_watermark=sum(state["numRowsDroppedByWatermark"] for state in states),
            is_done="addBatch" in progress["durationMs"],
        )


def reports_of(query: StreamingQuery, known: BatchReport | None = None) -> list[BatchReport]:
    """Return the reports that Spark still has of a query, oldest first: those behind `known`."""
    found: list[BatchReport] = []
    for progress in reversed(query._jsq.recentProgress()):  # noqa: SLF001 - see above
        if known is not None and _is_of(progress, known):
            break
        found.append(BatchReport.of(query.name, json.loads(progress.json())))
    return found[::-1]


def _is_of(progress: JavaObject, report: BatchReport) -> bool:
    return (report.batch, report.at) == (progress.batchId(), progress.timestamp())


def _rate(value: float | None) -> float:
    return round(value, 1) if value is not None else 0.0


def _lag(sources: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    lag = {}
    for source in sources:
        taken, there = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
        for topic, partitions in there.items():
            for partition, offset in partitions.items():
                behind = offset - taken.get(topic, {}).get(partition, 0)
                lag[f"{topic}-{partition}"] = max(behind, 0)
    return lag


def _offsets(offsets: object) -> dict[str, dict[str, int]]:
    """Return offsets by topic and partition; none of a source other than Kafka's."""
    return offsets if isinstance(offsets, dict) else {}


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

    def batches(self) -> dict[str, int]:
        """Return the last batch that each query has ended, as far as it is known here."""
        return {name: followed.batch for name, followed in self._followed.items()}

    def look(self) -> None:
        """Take in what the queries report since the last look."""
        for query in self._queries:
            followed = self._followed[query.name]
            reports = reports_of(query, followed.last)
            if not reports:
                continue
            for report in reports:
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
