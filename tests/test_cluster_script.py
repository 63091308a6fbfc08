"""`make cluster` refuses a number of brokers that its property files cannot make a cluster of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "cluster.py"


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (0, "fewer than 3 cannot hold topics of 3 replicas"),
        (2, "fewer than 3 cannot hold topics of 3 replicas"),
        (4, "there is no config/server-3.properties"),
    ],
)
def test_a_number_of_brokers_that_cannot_be_is_told(count: int, reason: str) -> None:
    command = [sys.executable, str(SCRIPT), "--brokers", str(count)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    assert f"--brokers {count}: {reason}" in ended.stderr
