"""Jobs with the file that `make secure` writes for them: TLS, a password, and ACLs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.spark_jobs.data.month import MONTH
from tests.support.jars import REPOSITORY
from tests.support.security.acls import ALL, TOPIC, allow
from tests.support.security.realm import ALICE
from tests.support.security.secure_script import secured_by_script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.security.secure_script import ScriptedBroker

JOB_TIMEOUT_SECONDS = 600
pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.timeout(3 * JOB_TIMEOUT_SECONDS),
]


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[ScriptedBroker]:
    """Start a broker with TLS, SASL and ACLs."""
    with secured_by_script(tmp_path / "secure") as broker:
        yield broker


def _job(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spark_jobs", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=JOB_TIMEOUT_SECONDS,
        check=False,
    )


def test_jobs_log_in_with_the_file_and_do_what_acls_allow(
    secured: ScriptedBroker, tmp_path: Path
) -> None:
    file = ("--options-file", str(secured.files / f"{ALICE}.toml"))
    months = ("--months", str(MONTH), "--partitions", "2")
    denied = _job("produce_flights", *file, *months)
    assert denied.returncode == 1
    assert "uthoriz" in denied.stderr, denied.stderr[-2000:]

    allow(secured.librdkafka("admin"), ALICE, TOPIC, "*", ALL)
    made = _job("produce_flights", *file, *months)
    assert made.returncode == 0, made.stderr[-2000:]

    spark = ("--spark", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1")
    places = ("--checkpoint", str(tmp_path / "checkpoint"), "--once")
    routed = _job("route", *file, *spark, *places)
    assert routed.returncode == 0, routed.stderr[-2000:]
