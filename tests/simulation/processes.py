"""Simulations in processes of their own, whose hashes are the same in every run."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.jars import REPOSITORY


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tests.simulation` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def is_bad(line: str) -> bool:
    """Whether a line is of a seed that is not fine."""
    return line.startswith("seed ") and ": fine (" not in line
