"""The archive through kill -9: of the job at moments drawn from a seed, of compaction beside it.

After all of it the audit, as a program, finds each record archived once.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event
from typing import TYPE_CHECKING

import pytest

from spark_jobs.archive.archive_directory import ArchiveDirectory
from spark_jobs.errors import EXIT_FAILED
from tests.spark_jobs.data import days
from tests.spark_jobs.data.archives import listed, options_for, places, places_of_flights
from tests.spark_jobs.kills.job_process import POLL_SECONDS, RUN_SECONDS, Job, run_job, running
from tests.spark_jobs.kills.killing import drawn_moments, run_through_kills
from tests.support.jars import REPOSITORY
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.jobs.archive import ArchiveOptions
    from tests.spark_jobs.kills.job_process import JobProcess

SEEDS = (1, 2, 3)
BATCH = 300
BATCHES = 6
COMPACTION_KILLS = 3
LONGEST_COMPACTION_SECONDS = 5.0
"""From when it begins to write until the last hour is in place, on an idle machine."""

BETWEEN_READINGS_SECONDS = 0.2
"""Compaction gets its turn."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def _job(options: ArchiveOptions, *more: str) -> Job:
    arguments = (
        *("--bootstrap-servers", options.bootstrap_servers, "--topic", options.topic),
        *("--directory", str(options.directory), *more),
    )
    return Job("archive", arguments, options.checkpoint)


def _audited(options: ArchiveOptions, place: Path) -> tuple[int, dict[str, object], str]:
    """Run the audit as a program; return its exit code, its JSON and what it said."""
    file = place / "audit.json"
    command = [sys.executable, "-m", "spark_jobs", "audit", *_job(options).arguments]
    outcome = subprocess.run(
        [*command, "--json", str(file), "--spark-log", str(place / "audit.log")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    return outcome.returncode, json.loads(file.read_text()), outcome.stdout + outcome.stderr


def _prepared(servers: str, topic: str, place: Path) -> ArchiveOptions:
    days.make_topic(servers, topic)
    days.produce_lines(servers, topic, days.lines())
    return options_for(servers, topic, place)


def _wait_for_batches(job: Job, process: JobProcess, batches: int) -> None:
    def are_there() -> bool:
        assert process.poll() is None, process.said()
        return len(job.committed("archive")) >= batches

    assert wait_until(are_there, RUN_SECONDS), process.said()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_killed_at_drawn_moments_archives_each_record_once(
    seed: int, servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = _prepared(servers, new_name(f"killed-{seed}"), tmp_path)
    job = _job(options, "--max-offsets-per-trigger", str(BATCH))
    ordeal = run_through_kills(job, drawn_moments(seed, ["archive"], BATCHES))
    assert ordeal.unfinished  # it was killed in mid-batch
    assert places(listed(spark, options)) == places_of_flights(options)
    code, found, said = _audited(options, tmp_path)
    assert (code, found["exact"]) == (0, True), said


def _keep_reading(spark: SparkSession, options: ArchiveOptions, stop: Event) -> int:
    """Read until stopped, as readers should; what was there once stays there once."""
    seen: set[tuple[int, int]] = set()
    for times in count():
        with ArchiveDirectory(options.directory).reading():
            rows = places(listed(spark, options))
        assert len(rows) == len(set(rows))
        assert seen <= set(rows)
        seen = set(rows)
        if stop.wait(BETWEEN_READINGS_SECONDS):
            return times
    raise AssertionError


def _killed_at_work(compaction: Job, directory: ArchiveDirectory, delay: float) -> bool:
    """Kill a compaction some time after it began to write; return whether it left work undone."""

    def made() -> set[Path]:
        return set(directory.compacted.glob("[0-9a-f]*"))

    before = made()
    with running(compaction) as process:

        def is_over() -> bool:
            return process.poll() is not None

        def has_begun() -> bool:
            return bool(made() - before) or is_over()

        assert wait_until(has_begun, RUN_SECONDS, POLL_SECONDS)
        wait_until(is_over, delay, POLL_SECONDS)
        assert process.poll() in {None, 0}, process.said()
        process.kill()
    return bool(made())


@pytest.mark.parametrize("seed", SEEDS)
def test_compactions_killed_beside_a_running_job_leave_each_record_there_once(
    seed: int, servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    chance = random.Random(seed)
    options = _prepared(servers, new_name(f"compacted-{seed}"), tmp_path)
    directory = ArchiveDirectory(options.directory)
    job = _job(options, "--max-offsets-per-trigger", "100")
    compaction = Job("archive", (*job.arguments, "--compact"), tmp_path / "compaction")
    delays = [chance.uniform(0, LONGEST_COMPACTION_SECONDS) for _ in range(COMPACTION_KILLS)]
    stop = Event()
    with running(job) as archiving, ThreadPoolExecutor(1) as pool:
        _wait_for_batches(job, archiving, 2)
        reading = pool.submit(_keep_reading, spark, options, stop)
        try:
            undone = [_killed_at_work(compaction, directory, delay) for delay in delays]
        finally:
            stop.set()
        assert reading.result() > 0
        assert archiving.poll() is None, archiving.said()
    assert any(undone)
    outcome = run_job(job, "--once")
    assert outcome.returncode == 0, outcome.stdout
    assert places(listed(spark, options)) == places_of_flights(options)
    last = run_job(compaction)
    assert last.returncode == 0, last.stdout
    assert places(listed(spark, options)) == places_of_flights(options)
    assert not any(directory.compacted.iterdir())


def test_a_running_job_that_is_stopped_says_so_and_the_next_goes_on(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = _prepared(servers, new_name("stopped"), tmp_path)
    job = _job(options, "--max-offsets-per-trigger", "300")
    with running(job) as archiving:
        _wait_for_batches(job, archiving, 1)
        archiving.process.terminate()
        assert archiving.wait() == 0, archiving.said()
    assert archiving.said().endswith(f"records taken into {options.directory}\n")
    assert run_job(job, "--once").returncode == 0
    assert places(listed(spark, options)) == places_of_flights(options)


def test_the_audit_says_by_its_exit_code_that_a_file_is_missing(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = _prepared(servers, new_name("robbed"), tmp_path)
    outcome = run_job(_job(options), "--once")
    assert outcome.returncode == 0, outcome.stdout
    file = next(options.directory.glob("event_date=*/event_hour=*/*.parquet"))
    lost = spark.read.parquet(str(file)).count()
    file.unlink()
    code, found, said = _audited(options, tmp_path)
    assert code == EXIT_FAILED
    assert found["exact"] is False
    assert f"differences: {lost} missing" in said
