"""The command that puts dead letters back: with something missing, and with a wrong option."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.dependency_check import PACKAGES
from spark_jobs.errors import EXIT_BAD_OPTION, EXIT_FAILED
from spark_jobs.retry.__main__ import NEEDED, main

REPOSITORY = Path(__file__).resolve().parents[3]
TOPIC = ("--dead-topic", "billing.dlq")


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.process
def test_missing_packages_are_one_line() -> None:
    bare = f"{sys.base_prefix}/bin/python3"
    done = python(bare, "-S", "-m", "spark_jobs.retry", *TOPIC)
    assert done.returncode == EXIT_FAILED
    assert done.stderr.startswith("error: not installed: confluent-kafka, pydantic. Install with `")
    assert done.stderr.endswith(" -m pip install confluent-kafka pydantic`\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.process
def test_no_other_packages_are_needed() -> None:
    others = sorted({*PACKAGES} - {*NEEDED})
    hide = f"import sys; sys.modules.update(dict.fromkeys({others}))"
    done = python(sys.executable, "-c", f"{hide}; import spark_jobs.retry.replay")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_address_without_a_port_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bootstrap-servers", "localhost", *TOPIC]) == EXIT_BAD_OPTION
    assert capsys.readouterr().err == (
        "error: --bootstrap-servers: expected HOST:PORT, or several with commas; "
        "IPv6 as [::1]:9092, got 'localhost'\n"
    )
