"""The pipeline as a person starts it: all jobs, counted; again; in parts; interrupted."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import EXIT_BAD_OPTION, EXIT_BY_SIGNAL
from spark_jobs.jobs.route import RouteOptions
from spark_jobs.options import parse_options
from spark_jobs.pipeline import pipeline
from spark_jobs.pipeline.other_stages import package_log_lines
from spark_jobs.pipeline.pipeline_options import JOBS, PipelineOptions
from spark_jobs.pipeline.pipeline_stages import STAGES
from tests.spark_jobs.data.month import (
    DAMAGED,
    MONTH,
    damaged_lines,
    flights_by_route,
    month_of_flights,
)
from tests.spark_jobs.data.planes import all_planes
from tests.spark_jobs.page_reading import Page
from tests.support.jars import REPOSITORY
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIMEOUT_SECONDS = 900
"""The whole family on a month takes a minute and a half on two cores that do nothing else."""


def _command(place: Path, *arguments: str) -> list[str]:
    places = {"--page": "page.html", "--picture": "p.png", "--spark-log": "spark.log"}
    words = [word for flag, name in places.items() for word in (flag, str(place / name))]
    month = ("--months", str(MONTH), "--damaged", str(DAMAGED), "--work-dir", str(place))
    return [sys.executable, "-m", "spark_jobs", "pipeline", *month, *words, *arguments]


def _run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(place, *arguments),
        cwd=REPOSITORY,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def _counts(output: str) -> dict[str, list[str]]:
    """Return the table's rows by job and what is counted."""
    job = ""
    found = {}
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split("│")[1:-1]]
        if len(cells) == 6:
            job = cells[0] or job
            found[f"{job}: {cells[1]}"] = cells[2:5]
    return found


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3 * TIMEOUT_SECONDS)
def test_the_family_adds_up_on_a_broker_of_its_own_and_adds_nothing_when_run_again(
    tmp_path: Path,
) -> None:
    log = tmp_path / "dpkg.log"
    log.write_text("2025-06-24 10:00:00 status installed tzdata:all 2025b-0\nno known format\n")
    some = ("--logs", str(log), "--events", "5000")
    first = _run(tmp_path, *some)
    assert first.returncode == 0, first.stdout + first.stderr[-3000:]
    counts = _counts(first.stdout)
    flights = len(month_of_flights())
    lines = f"{flights + DAMAGED:,}"
    for route, count in flights_by_route().items():
        assert counts[f"route: flights.{route}"][0] == f"{count:,}"
    assert counts["route: sum, each record of the source once"] == [lines, lines, "="]
    assert counts["archive: flights in the archive"] == [f"{flights:,}", f"{flights:,}", "="]
    assert counts["audit: archived once, or rejected"] == [lines, lines, "="]
    joined = int(month_of_flights().tailnum.isin(all_planes().tailnum).sum())
    assert counts["enrich: flights with their plane"][0] == f"{joined:,}"
    assert counts["logs: lines of a known format"][0] == "1"
    assert counts["logs: lines of none, kept whole"][0] == "1"
    damages = [line.damage for line in damaged_lines().values()]
    unknown = sum(d is not None and d.reason.startswith("unknown-") for d in damages)
    assert counts["retry: dead letters"][0] == str(DAMAGED)
    assert counts["retry: dead letters that were tried again, twice"][0] == str(unknown)
    assert counts["activity: page views and malformed records"][0] == "5,000"
    assert "WRONG" not in first.stdout
    page = Page.of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert len(page.pictures) >= 6
    assert (tmp_path / "p.png").exists()

    again = _run(tmp_path, *some)
    assert again.returncode == 0, again.stdout + again.stderr[-3000:]
    assert _counts(again.stdout) == counts
    for said in ("route 0", "aggregate-delays-by-airport 0", "archive 0", "enrich 0"):
        assert re.search(rf"\b{said}\b", again.stdout), said


def _signalled(
    place: Path, number: signal.Signals, is_due: Callable[[Path], bool]
) -> subprocess.CompletedProcess[str]:
    """Run the pipeline in `place` until something is due there, then send it a signal."""
    command = _command(place)
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert wait_until(lambda: is_due(place), TIMEOUT_SECONDS)
        send = os.killpg if number == signal.SIGINT else os.kill  # a terminal's goes to all
        send(process.pid, number)
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _is_starting_spark(place: Path) -> bool:
    return (place / "spark.log").exists()


def _is_running_queries(place: Path) -> bool:
    return (place / "own" / "checkpoint" / "route" / "offsets").exists()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(2 * TIMEOUT_SECONDS)
@pytest.mark.parametrize("is_due", [_is_starting_spark, _is_running_queries])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_pipeline_that_is_interrupted_says_no_more(
    is_due: Callable[[Path], bool], number: signal.Signals, tmp_path: Path
) -> None:
    outcome = _signalled(tmp_path, number, is_due)
    assert outcome.stderr == "interrupted\n"
    assert outcome.returncode == EXIT_BY_SIGNAL + number
    assert "What the jobs came to" not in outcome.stdout
    assert not (tmp_path / "p.png").exists()


def test_every_job_that_can_be_chosen_has_a_stage() -> None:
    assert tuple(STAGES) == JOBS


def test_parts_run_in_the_order_of_the_whole() -> None:
    options = parse_options(PipelineOptions, ["--only", "report", "route"], "pipeline", "")
    assert options.chosen() == ("route", "report")
    assert PipelineOptions().chosen() == JOBS


def test_an_unknown_part_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert pipeline.main(["--only", "rout"]) == EXIT_BAD_OPTION
    assert "expected some of produce, route, " in capsys.readouterr().err


def test_jobs_get_what_they_share_and_places_of_their_own(tmp_path: Path) -> None:
    options = PipelineOptions(
        work_dir=tmp_path, kafka={"client.id": "x"}, set={"prefix": "p"}, partitions=7
    ).running_at("localhost:1")
    route = options.of_job(RouteOptions, "route")
    assert (route.bootstrap_servers, route.partitions, route.once) == ("localhost:1", 7, True)
    assert (route.kafka, route.set) == ({"client.id": "x"}, {"prefix": "p"})
    assert route.checkpoint == tmp_path / "own" / "checkpoint"
    elsewhere = PipelineOptions(work_dir=tmp_path, bootstrap_servers="a:1,b:2").running_at("a:1")
    assert elsewhere.work_dir == tmp_path / "a-1,b-2"


def test_lines_of_package_logs_are_counted_with_those_rotated(tmp_path: Path) -> None:
    (tmp_path / "dpkg.log").write_text("1\n\n2\nnot ended")
    (tmp_path / "dpkg.log.1").write_text("3\n")
    (tmp_path / "dpkg.log.2.gz").write_bytes(gzip.compress(b"4\n5\n"))
    (tmp_path / "other.log").write_text("6\n")
    assert package_log_lines([tmp_path / "dpkg.log"]) == 5
