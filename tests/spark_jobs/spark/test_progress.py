"""What is told of a running query: rates, lag by partition, watermark; once for each batch."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.errors import JobError
from spark_jobs.options import StreamOptions
from spark_jobs.spark.progress import BatchReport, Followed, Follower, reports_of
from spark_jobs.spark.streams import read_stream, run_to_end, start_query
from tests.spark_jobs.kafka.producing import Record, create_topic, produce_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

KEYS = {
    *("query", "batch", "at", "rows", "input_rows_per_second", "processed_rows_per_second"),
    *("duration_ms", "lag", "watermark", "state_rows", "dropped_by_watermark"),
}


def _progress(batch: int, rows: int, **changes: Any) -> dict[str, Any]:
    """Return a report as Spark gives it; without rows, one of a look that found nothing."""
    progress = {
        "batchId": batch,
        "timestamp": f"2013-03-01T10:00:0{batch}.{rows:03}Z",
        "numInputRows": rows,
        "inputRowsPerSecond": 100.0,
        "processedRowsPerSecond": 250.0,
        "batchDuration": 40,
        "durationMs": {"addBatch": 30, "latestOffset": 1} if rows else {"latestOffset": 1},
        "stateOperators": [],
        "sources": [{"endOffset": {"t": {"0": 5}}, "latestOffset": {"t": {"0": 9, "1": 4}}}],
    }
    return progress | changes


def _query(*reports: dict[str, Any]) -> Any:
    """Return a query as far as it is asked: its reports as objects of the JVM."""
    kept = [
        SimpleNamespace(
            batchId=lambda report=report: report["batchId"],
            timestamp=lambda report=report: report["timestamp"],
            json=lambda report=report: json.dumps(report),
        )
        for report in reports
    ]
    return SimpleNamespace(name="q", _jsq=SimpleNamespace(recentProgress=lambda: kept))


def test_lag_is_what_each_partition_holds_that_was_not_taken() -> None:
    report = BatchReport.of("q", _progress(0, 10))
    assert report.lag == {"t-0": 4, "t-1": 4}
    assert report.total_lag == 8


@pytest.mark.parametrize("offsets", [12, None, "text"])
def test_a_source_without_partitions_has_no_lag(offsets: object) -> None:
    source = {"endOffset": offsets, "latestOffset": offsets}
    assert BatchReport.of("q", _progress(0, 1, sources=[source])).lag == {}


def test_a_rate_of_no_time_which_spark_leaves_out_is_none() -> None:
    progress = _progress(0, 1)
    del progress["inputRowsPerSecond"]
    assert BatchReport.of("q", progress).input_rows_per_second == 0.0


def test_only_reports_behind_the_known_one_are_taken_out_of_the_jvm() -> None:
    query = _query(_progress(0, 3), _progress(1, 4), _progress(2, 5))
    assert [report.batch for report in reports_of(query)] == [0, 1, 2]
    assert [report.batch for report in reports_of(query, reports_of(query)[1])] == [2]
    assert reports_of(query, reports_of(query)[2]) == []


def test_a_batch_counts_once_and_when_it_ran_not_when_it_was_looked_for() -> None:
    followed = Followed()
    reports = [_progress(0, 0), _progress(0, 0), _progress(0, 7), _progress(1, 0)]
    taken = [followed.take(BatchReport.of("q", report)) for report in reports * 2]
    assert [index for index, is_new in enumerate(taken) if is_new] == [2]
    assert followed.rows == 7
    assert followed.take(BatchReport.of("q", _progress(1, 5)))
    assert followed.rows == 12


def test_the_metrics_file_has_a_line_for_each_batch(tmp_path: Path) -> None:
    path = tmp_path / "new" / "metrics.jsonl"
    query = _query()
    with Follower([query], path) as follower:
        for reports in ([_progress(0, 0)], [_progress(0, 3)], [_progress(0, 3), _progress(1, 4)]):
            query._jsq = _query(*reports)._jsq
            follower.look()
            follower.look()
        assert follower.rows() == {"q": 7}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["batch"], line["rows"]) for line in lines] == [(0, 3), (1, 4)]
    assert all(line.keys() == KEYS for line in lines)


def test_a_metrics_file_on_a_full_disk_is_one_line() -> None:
    query = _query(_progress(0, 3))
    message = "^--metrics: /dev/full cannot be written: no space left on device$"
    with Follower([query], Path("/dev/full")) as follower, pytest.raises(JobError, match=message):
        follower.look()


def test_a_stream_is_told_batch_by_batch_until_nothing_is_left(
    spark: SparkSession, servers: str, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    """Given windows over 30 records in three partitions, when ten are taken at a time."""
    topic = new_name("progress")
    create_topic(servers, topic, 3)
    create_topic(servers, f"{topic}.windows")
    produce_records(servers, topic, [Record(b"k", b"v", index % 3) for index in range(30)])
    options = StreamOptions(
        bootstrap_servers=servers,
        once=True,
        checkpoint=tmp_path / "checkpoint",
        max_offsets_per_trigger=12,
    )
    windows = (
        read_stream(spark, options, topic)
        .withWatermark("timestamp", "1 hour")
        .groupBy(F.window("timestamp", "1 day"))
        .count()
        .select(
            F.col("count").cast("string").alias("value"), F.lit(f"{topic}.windows").alias("topic")
        )
    )
    metrics = tmp_path / "metrics.jsonl"
    query = start_query(windows, options, "windows", output_mode="update")
    assert run_to_end([query], metrics) == {"windows": 30}
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    taking = [line for line in lines if line["rows"]]
    assert [line["rows"] for line in taking] == [12, 12, 6]
    assert [sum(line["lag"].values()) for line in taking] == [18, 6, 0]
    assert set(taking[0]["lag"]) == {f"{topic}-{partition}" for partition in range(3)}
    assert taking[0]["watermark"] == "1970-01-01T00:00:00.000Z"
    assert taking[-1]["watermark"][:2] == "20"
    assert taking[-1]["state_rows"] in {1, 2}, "a day, or two around midnight"
    assert [line["batch"] for line in lines] == sorted({line["batch"] for line in lines})
