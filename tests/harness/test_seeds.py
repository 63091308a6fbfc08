"""`--one-seed`: of a test that takes seeds the first one that is selected."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

TESTS = """
import pytest

@pytest.mark.parametrize("kind", ["ours", "apache"])
@pytest.mark.parametrize("seed", [0, pytest.param(7, marks=pytest.mark.slow), 8])
def test_drawn(seed, kind):
    pass

@pytest.mark.parametrize("step", [1, 2])
def test_step(step):
    pass
"""
DRAWN = {f"test_drawn[{seed}-{kind}]" for seed in (0, 7, 8) for kind in ("ours", "apache")}
STEPS = {"test_step[1]", "test_step[2]"}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), DRAWN | STEPS),
        (("--one-seed",), {"test_drawn[0-ours]", "test_drawn[0-apache]"} | STEPS),
        (("--one-seed", "-m", "slow"), {"test_drawn[7-ours]", "test_drawn[7-apache]"}),
        (("--one-seed", "-k", "ours", "-p", "no:randomly"), {"test_drawn[0-ours]"}),
    ],
)
def test_each_test_has_one_of_its_seeds(
    flags: tuple[str, ...], expected: set[str], tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes long\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.support.seeds", "--co", "-q", *flags],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert set(re.findall(r"^test_it\.py::(.*)$", run.stdout, re.MULTILINE)) == expected
