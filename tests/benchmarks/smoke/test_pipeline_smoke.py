"""The pipeline benchmark runs, tiny, on one broker; and what it says of a long run is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import pipeline
from tests.benchmarks.spark.pipeline_jobs import JOB_ROWS
from tests.benchmarks.spark.pipeline_load import Sample, verdict
from tests.benchmarks.spark.pipeline_sustained import taken, taken_by
from tests.spark_jobs.kills.job_process import Job
from tests.support.jars import REPOSITORY
from tests.support.java_command import SHORT_LIVED_JVM

if TYPE_CHECKING:
    from pathlib import Path

SMOKE_SECONDS = 900
RATE = 1_000
OFFSETS = """\
v1
{"batchWatermarkMs":0,"batchTimestampMs":1}
{"planes":{"0":7}}
{"clicks":{"0":30,"1":12}}
"""


@pytest.mark.bench
@pytest.mark.spark
@pytest.mark.timeout(SMOKE_SECONDS)
@pytest.mark.parametrize(
    "parts", [["scan"], pytest.param(["jobs", "scan"], marks=pytest.mark.slow)]
)
def test_smoke_run_measures_every_row(tmp_path: Path, parts: list[str]) -> None:
    """Given a process of its own, for a process has one Spark, and tests share theirs."""
    make = "apache" if os.environ.get("AGAINST") == "apache" else "ours"
    flags = ("--smoke", f"--only-{make}", "--parts", *parts, "--output", str(tmp_path))
    outcome = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.pipeline", *flags],
        cwd=REPOSITORY,
        env={**os.environ, **SHORT_LIVED_JVM},
        capture_output=True,
        text=True,
        timeout=SMOKE_SECONDS,
        check=False,
    )

    assert outcome.returncode == 0, outcome.stderr[-3000:]
    rows = json.loads((tmp_path / "pipeline.json").read_text())["rows"]
    of_jobs = len(pipeline.FEEDS) + len(JOB_ROWS) + 1 if "jobs" in parts else 0
    assert len(rows) == of_jobs + 2 + 2
    assert all(row["brokers"][make]["rounds"] for row in rows)


def _run(lags: list[int], rate: int = RATE) -> list[Sample]:
    """Return a sample each ten seconds, with these records not taken yet."""
    produced = [10 * rate * number for number in range(len(lags))]
    return [
        Sample(10.0 * number, there, there - lag, 0.0, 0.0, 0.0, 0.0, 0.0)
        for number, (there, lag) in enumerate(zip(produced, lags, strict=True))
    ]


def test_a_saw_tooth_that_keeps_its_height_is_bounded() -> None:
    said = verdict(_run([9_000, 8_000, 5_000, 9_000, 5_000, 9_000, 5_000, 9_000, 5_000]), RATE)
    assert (said.keeps_rate, said.is_lag_bounded) == (True, True)
    assert (said.middle_peak, said.last_peak) == (9_000, 9_000)


def test_a_lag_that_grows_is_not_bounded() -> None:
    said = verdict(_run([900 * number for number in range(12)]), RATE)
    assert not said.is_lag_bounded
    assert not said.keeps_rate
    assert "the lag is NOT bounded" in said.words()


def test_a_generator_that_is_too_slow_does_not_keep_the_rate() -> None:
    said = verdict(_run([0] * 9, rate=900), RATE)
    assert (said.keeps_rate, said.is_lag_bounded) == (False, True)


def test_records_taken_are_those_committed_by_the_slowest_query(tmp_path: Path) -> None:
    job = Job("activity", (), tmp_path)
    assert taken(job, "clicks") == 0
    for query, batch in (("fast", 1), ("slow", 0), ("of-planes", 0)):
        for kind in ("offsets", "commits"):
            (tmp_path / query / kind).mkdir(parents=True)
        for number in range(batch + 1):
            (tmp_path / query / "commits" / str(number)).touch()
    (tmp_path / "fast" / "offsets" / "1").write_text(OFFSETS)
    (tmp_path / "slow" / "offsets" / "0").write_text(OFFSETS.replace("30", "20"))
    (tmp_path / "slow" / "offsets" / "1").write_text(OFFSETS)
    (tmp_path / "of-planes" / "offsets" / "0").write_text('v1\n{}\n{"planes":{"0":7}}\n')

    assert taken_by(tmp_path / "fast" / "offsets" / "1", "clicks") == 42
    assert taken(job, "clicks") == 32
