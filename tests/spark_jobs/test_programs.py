"""The jobs as a person starts them: as modules, with spark-submit, and with something missing."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import EXIT_BAD_OPTION, EXIT_BY_SIGNAL, EXIT_FAILED
from spark_jobs.options import CONNECTOR
from tests.spark_jobs.conftest import TOPIC
from tests.spark_jobs.month import DAMAGED, MONTH, flights_by_route, month_of_flights
from tests.support.broker_process import free_port
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.produce_flights import Outcome

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM_TIMEOUT_SECONDS = 220
JOBS = ("produce_flights", "route", "aggregate", "produce_activity", "pipeline")
TOPICS = {"produce_activity": "activity"}


def _run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        timeout=PROGRAM_TIMEOUT_SECONDS,
        check=False,
    )


def _job(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return _run(sys.executable, "-m", f"spark_jobs.{name}", *arguments, **environment)


@pytest.mark.parametrize("name", JOBS)
def test_help_names_every_option_and_its_default(name: str) -> None:
    outcome = _job(name, "--help", COLUMNS="100")
    assert outcome.returncode == 0
    assert "--bootstrap-servers" in outcome.stdout
    assert f"(default: {TOPICS.get(name, 'flights')})" in outcome.stdout


@pytest.mark.parametrize("name", JOBS)
def test_a_bad_option_is_one_line_and_exit_code_two(name: str) -> None:
    outcome = _job(name, "--partitions", "many")
    assert outcome.returncode == EXIT_BAD_OPTION
    assert outcome.stderr.startswith("error: --partitions: Input should be a valid integer")
    assert outcome.stderr.count("\n") == 1


def test_a_wrong_port_is_one_line_at_once() -> None:
    outcome = _job("route", "--bootstrap-servers", f"127.0.0.1:{free_port()}")
    assert outcome.returncode == EXIT_FAILED
    assert re.fullmatch(
        r"error: no broker listens at 127\.0\.0\.1:\d+: connection refused\. Start one with "
        r"`make run`, or name yours with --bootstrap-servers HOST:PORT\n",
        outcome.stderr,
    )


@pytest.mark.parametrize("name", ["pipeline", "route"])
def test_no_java_is_one_line(name: str, servers: str) -> None:
    nowhere = str(Path(sys.executable).parent)
    outcome = _job(name, "--bootstrap-servers", servers, PATH=nowhere, JAVA_HOME="")
    assert outcome.returncode == EXIT_FAILED
    assert outcome.stderr == (
        "error: Spark needs Java 17 or newer, and there is no `java`: "
        "install openjdk-17-jre-headless (Debian), or set JAVA_HOME\n"
    )


def test_an_old_java_is_one_line(servers: str, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    outcome = _job("route", "--bootstrap-servers", servers, JAVA_HOME=str(tmp_path))
    assert outcome.returncode == EXIT_FAILED
    assert f"{java} is Java 11: install" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_port_that_is_no_broker_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        outcome = _job("produce_flights", "--bootstrap-servers", server)
    assert outcome.returncode == EXIT_FAILED
    assert outcome.stderr.startswith(f"error: {server}: something listens there but does not")
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize("name", JOBS)
def test_a_missing_extra_is_one_line(name: str, tmp_path: Path) -> None:
    """Given a Python with none of the packages, when a job is started, then say what to do."""
    python = f"{sys.base_prefix}/bin/python3"
    outcome = _run(python, "-S", "-m", f"spark_jobs.{name}", PYTHONPATH="")
    assert outcome.returncode == EXIT_FAILED
    assert outcome.stderr.startswith("error: not installed: confluent_kafka, ")
    assert "pip install '.[spark]'" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def _signalled_pipeline(
    place: Path, number: signal.Signals, is_due: Callable[[Path], bool], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run the pipeline in `place` until something is due there, then send it a signal."""
    places = {"--work-dir": "", "--picture": "p.png", "--spark-log": "spark.log"}
    words = [word for flag, name in places.items() for word in (flag, f"{place}/{name}")]
    command = [sys.executable, "-m", "spark_jobs.pipeline", "--months", str(MONTH)]
    process = subprocess.Popen(
        [*command, *words, *arguments],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert wait_until(lambda: is_due(place), PROGRAM_TIMEOUT_SECONDS)
        send = os.killpg if number == signal.SIGINT else os.kill  # a terminal's goes to all
        send(process.pid, number)
        out, err = process.communicate(timeout=PROGRAM_TIMEOUT_SECONDS)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _is_starting_spark(place: Path) -> bool:
    return (place / "spark.log").exists()


def _is_running_queries(place: Path) -> bool:
    return (place / "own" / "checkpoint" / "route" / "offsets").exists()


def _has_committed(place: Path) -> bool:
    checkpoint = place / "own" / "checkpoint"
    return all(
        (checkpoint / query / "commits" / "0").exists()
        for query in ("route", "aggregate-delays-by-airport")
    )


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(2 * PROGRAM_TIMEOUT_SECONDS)
@pytest.mark.parametrize("is_due", [_is_starting_spark, _is_running_queries])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_pipeline_that_is_interrupted_says_no_more(
    is_due: Callable[[Path], bool], number: signal.Signals, tmp_path: Path
) -> None:
    outcome = _signalled_pipeline(tmp_path, number, is_due)
    assert outcome.stderr == "interrupted\n"
    assert outcome.returncode == EXIT_BY_SIGNAL + number
    assert "counted" not in outcome.stdout
    assert not (tmp_path / "p.png").exists()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(2 * PROGRAM_TIMEOUT_SECONDS)
def test_a_pipeline_without_an_end_counts_when_it_is_stopped(tmp_path: Path) -> None:
    outcome = _signalled_pipeline(tmp_path, signal.SIGINT, _has_committed, "--no-once")
    assert outcome.stderr == ""
    assert outcome.returncode == 0
    lines = len(month_of_flights()) + 300
    assert re.search(rf"records in the source +│ +{lines:,} ", outcome.stdout)
    assert (tmp_path / "p.png").exists()


@pytest.mark.slow
@pytest.mark.spark
def test_spark_submit_runs_a_job_from_its_file(
    servers: str, produced: Outcome, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    prefix = new_name("submitted")
    outcome = _run(
        str(Path(sys.executable).parent / "spark-submit"),
        *("--master", "local[2]", "--packages", CONNECTOR, "spark_jobs/route.py"),
        *("--bootstrap-servers", servers, "--topic", TOPIC, "--once"),
        *("--set", f"prefix={prefix}", "--rejects-topic", f"{prefix}.rejected"),
        *("--checkpoint", str(tmp_path)),
    )
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    assert f"route: {produced.lines:,} records routed" in outcome.stdout


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(2 * PROGRAM_TIMEOUT_SECONDS)
def test_the_pipeline_starts_its_own_broker_counts_and_adds_nothing_when_run_again(
    tmp_path: Path,
) -> None:
    arguments = ("--months", str(MONTH), "--damaged", str(DAMAGED), "--work-dir", str(tmp_path))
    picture = tmp_path / "delays.png"
    first = _job("pipeline", *arguments, "--picture", str(picture))
    assert first.returncode == 0, first.stderr[-3000:]
    lines = len(month_of_flights()) + DAMAGED
    assert f"{lines:,} records, 0 were there before" in first.stdout
    assert picture.exists()
    for route, flights in flights_by_route().items():
        assert re.search(rf"flights\.{route} +│ +{flights:,} ", first.stdout)
    again = _job("pipeline", *arguments, "--picture", str(picture))
    assert again.returncode == 0, again.stderr[-3000:]
    assert f"0 records, {lines:,} were there before" in again.stdout
    assert "route 0; aggregate-delays-by-airport 0" in again.stdout
    assert (
        again.stdout.partition("counted")[2].partition("\n")[2]
        == (first.stdout.partition("counted")[2].partition("\n")[2])
    )
