"""Simulations in processes of their own, whose hashes are the same in every run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def slow_seeds(*ranges: range) -> list[ParameterSet]:
    """Ranges of seeds as parameters of slow tests."""
    return [pytest.param(seeds, marks=pytest.mark.slow) for seeds in ranges]


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tests.simulation` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=2900,
        check=False,
    )


def check_fine(seeds: range, *arguments: str) -> None:
    """Every seed keeps every promise."""
    done = simulate(*arguments, "--seeds", f"{seeds.start}-{seeds.stop}", "--trace")

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert done.stdout.count(": fine") == len(seeds), done.stdout[-2000:]


def check_found(defect: str, shows: str, likely: str, seeds: str, *arguments: str) -> None:
    """A planted defect shows in one of the likely seeds, or of all, and as what it is.

    `shows` matches what is told of it, so that none is found by accident.
    """
    done = simulate(*arguments, "--seeds", likely, "--defect", defect)
    if done.returncode == 0:
        done = simulate(*arguments, "--seeds", seeds, "--defect", defect)

    (found,) = (line for line in done.stdout.splitlines() if _is_bad(line))
    assert re.search(shows, found), found
    assert done.returncode == 1


def _is_bad(line: str) -> bool:
    """Return whether a line reports a failed seed."""
    return line.startswith("seed ") and ": fine (" not in line
