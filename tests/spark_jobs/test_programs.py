"""The jobs as a person starts them: as modules, with spark-submit, and with something missing."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs import __main__ as package
from spark_jobs.errors import EXIT_BAD_OPTION, EXIT_FAILED
from spark_jobs.jobs.catalogue import JOBS as ALL_JOBS
from spark_jobs.options import EXCLUDED_PACKAGES, PACKAGES
from tests.spark_jobs.conftest import TOPIC
from tests.support.brokers.broker_process import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.jobs.produce_flights import Outcome

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM_TIMEOUT_SECONDS = 600
JOBS = ("produce_flights", "route", "aggregate", "produce_activity", "activity", "pipeline")
DEFAULTS = {"produce_activity": "activity", "activity": "activity", "pipeline": "300"}
"""An option's, by job; `flights` for the others."""


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


def _module(name: str) -> str:
    return "spark_jobs.pipeline" if name == "pipeline" else f"spark_jobs.jobs.{name}"


def _job(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return _run(sys.executable, "-m", _module(name), *arguments, **environment)


def test_without_a_name_the_package_lists_its_jobs() -> None:
    outcome = _run(sys.executable, "-m", "spark_jobs")
    assert outcome.returncode == 0
    listed = [line.split()[0] for line in outcome.stdout.splitlines()[1:] if line]
    assert listed == [*ALL_JOBS]


def test_a_job_that_there_is_not_is_one_line() -> None:
    outcome = _run(sys.executable, "-m", "spark_jobs", "nonsense")
    assert outcome.returncode == EXIT_BAD_OPTION
    assert outcome.stderr.startswith(
        "error: there is no job 'nonsense'; there are: route, archive, "
    )
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ALL_JOBS)
def test_each_job_in_the_list_can_be_run(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with suppress(SystemExit):
        assert package.main([name, "--help"]) == 0
    assert name in capsys.readouterr().out.partition("\n")[0]


@pytest.mark.parametrize("name", JOBS)
def test_help_names_every_option_and_its_default(name: str) -> None:
    outcome = _job(name, "--help", COLUMNS="100")
    assert outcome.returncode == 0
    assert "--bootstrap-servers" in outcome.stdout
    assert "(default: )" not in outcome.stdout
    assert "(default: (" not in outcome.stdout
    assert f"(default: {DEFAULTS.get(name, 'flights')})" in outcome.stdout


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
    outcome = _run(python, "-S", "-m", _module(name), PYTHONPATH="")
    assert outcome.returncode == EXIT_FAILED
    assert re.match("error: not installed: .*confluent_kafka, ", outcome.stderr)
    assert "pip install '.[spark]'" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.spark
def test_spark_submit_runs_a_job_from_its_file(
    servers: str, produced: Outcome, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    prefix = new_name("submitted")
    outcome = _run(
        str(Path(sys.executable).parent / "spark-submit"),
        *("--master", "local[2]", "--packages", ",".join(PACKAGES)),
        *("--exclude-packages", EXCLUDED_PACKAGES, "spark_jobs/jobs/route.py"),
        *("--bootstrap-servers", servers, "--topic", TOPIC, "--once"),
        *("--set", f"prefix={prefix}", "--rejects-topic", f"{prefix}.rejected"),
        *("--checkpoint", str(tmp_path)),
    )
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    assert f"route: {produced.lines:,} records routed" in outcome.stdout
