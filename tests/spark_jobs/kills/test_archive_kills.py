"""The archive of each format through kill -9: of the job at drawn moments, of compaction.

After all of it the audit, as a program, finds each record archived once.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spark_jobs.tables.table_format import TableFormat
from tests.spark_jobs.data import days
from tests.spark_jobs.data.archives import options_for, places, places_of_flights
from tests.spark_jobs.kills.job_process import POLL_SECONDS, RUN_SECONDS, Job, run_job, running
from tests.spark_jobs.kills.killing import drawn_moments, run_through_kills
from tests.support.jars import REPOSITORY
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark_jobs.jobs.archive import ArchiveOptions
    from tests.spark_jobs.kills.job_process import JobProcess

SEEDS = (1, 2, 3)
BATCH = 300
BATCHES = 6
COMPACTION_KILLS = 3
LONGEST_COMPACTION_SECONDS = 3.0
"""From the first file that it makes until it has committed, on an idle machine."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def _job(options: ArchiveOptions, *more: str) -> Job:
    arguments = (
        *("--bootstrap-servers", options.bootstrap_servers, "--topic", options.topic),
        *("--directory", str(options.directory)),
    )
    format_ = ("--format", options.format)
    return Job("archive", (*arguments, *format_, *more), options.checkpoint)


def _audited(options: ArchiveOptions, place: Path) -> tuple[int, dict[str, object], str]:
    """Run the audit as a program; return its exit code, its JSON and what it said."""
    file = place / "audit.json"
    place_of = ("--directory", str(options.directory), "--topic", options.topic)
    servers = ("--bootstrap-servers", options.bootstrap_servers)
    command = [sys.executable, "-m", "spark_jobs", "audit", *place_of, *servers]
    outcome = subprocess.run(
        [*command, "--json", str(file), "--spark-log", str(place / "audit.log")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    said = outcome.stdout + outcome.stderr
    assert file.exists(), said
    return outcome.returncode, json.loads(file.read_text()), said


def _prepared(servers: str, topic: str, place: Path, kind: TableFormat) -> ArchiveOptions:
    days.make_topic(servers, topic)
    days.produce_lines(servers, topic, days.lines())
    return options_for(servers, topic, place, format=kind)


def _wait_for_batches(job: Job, process: JobProcess, batches: int) -> None:
    def are_there() -> bool:
        assert process.poll() is None, process.said()
        return len(job.committed("archive")) >= batches

    assert wait_until(are_there, RUN_SECONDS), process.said()


@pytest.mark.parametrize("kind", TableFormat)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_killed_at_drawn_moments_archives_each_record_once(
    seed: int, kind: TableFormat, servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = _prepared(servers, new_name(f"killed-{seed}"), tmp_path, kind)
    job = _job(options, "--max-offsets-per-trigger", str(BATCH))
    ordeal = run_through_kills(job, drawn_moments(seed, ["archive"], BATCHES))
    assert ordeal.unfinished  # it was killed in mid-batch
    assert places(options) == places_of_flights(options)
    code, found, said = _audited(options, tmp_path)
    assert (code, found["exact"]) == (0, True), said


def _killed_at_work(compaction: Job, directory: Path, delay: float) -> None:
    """Kill a compaction some time after it made its first file, unless it was quicker."""

    def files() -> set[Path]:
        return set(directory.rglob("*.parquet"))

    before = files()
    with running(compaction) as process:

        def is_over() -> bool:
            return process.poll() is not None

        assert wait_until(lambda: files() != before or is_over(), RUN_SECONDS, POLL_SECONDS)
        wait_until(is_over, delay, POLL_SECONDS)
        assert process.poll() in {None, 0}, process.said()
        process.kill()


@pytest.mark.parametrize("kind", TableFormat)
@pytest.mark.parametrize("seed", SEEDS)
def test_compactions_that_are_killed_leave_each_record_there_once(
    seed: int, kind: TableFormat, servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    chance = random.Random(seed)
    options = _prepared(servers, new_name(f"compacted-{seed}"), tmp_path, kind)
    job = _job(options, "--max-offsets-per-trigger", str(BATCH))
    compaction = Job("archive", (*_job(options).arguments, "--compact"), tmp_path / "compaction")
    outcome = run_job(job, "--once")
    assert outcome.returncode == 0, outcome.stdout
    for _ in range(COMPACTION_KILLS):
        _killed_at_work(
            compaction, options.directory, chance.uniform(0, LONGEST_COMPACTION_SECONDS)
        )
        assert places(options) == places_of_flights(options)
    days.produce_lines(servers, options.topic, days.lines()[:BATCH])
    for each in (run_job(job, "--once"), run_job(compaction)):
        assert each.returncode == 0, each.stdout
    assert places(options) == places_of_flights(options)


def test_a_running_job_beside_compaction_is_stopped_says_so_and_the_next_goes_on(
    servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = _prepared(servers, new_name("stopped"), tmp_path, TableFormat.DELTA)
    job = _job(options, "--max-offsets-per-trigger", "100")
    compaction = Job("archive", (*_job(options).arguments, "--compact"), tmp_path / "compaction")
    with running(job) as archiving:
        _wait_for_batches(job, archiving, 2)
        beside = run_job(compaction)
        assert beside.returncode == 0, beside.stdout
        archiving.process.terminate()
        assert archiving.wait() == 0, archiving.said()
    assert archiving.said().endswith(f"records taken into {options.directory}\n")
    assert run_job(job, "--once").returncode == 0
    assert places(options) == places_of_flights(options)
