"""A program that does as a job does with its checkpoint is killed where it was meant to be."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.spark_jobs.kills.job_process import Job
from tests.spark_jobs.kills.killing import (
    Moment,
    Stage,
    drawn_moments,
    kill_while_writing,
    run_through_kills,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

PROGRAM = """
import pathlib, subprocess, sys
from time import sleep
place = pathlib.Path(sys.argv[sys.argv.index("--checkpoint") + 1], "stub")
for kind in ("offsets", "commits"):
    (place / kind).mkdir(parents=True, exist_ok=True)
child = subprocess.Popen([sys.executable, "-c", "from time import sleep; sleep(600)"])
for number in range(len(list((place / "commits").iterdir())), 4):
    (place / "offsets" / str(number)).touch()
    sleep(1)
    (place / "commits" / str(number)).touch()
child.kill()
print("done")
"""


def _stub(tmp_path: Path) -> Job:
    launcher = (sys.executable, "-c", PROGRAM)
    return Job("stub", (), tmp_path / "checkpoint", launcher=launcher)


def test_a_job_is_killed_in_mid_batch_and_comes_to_its_end(tmp_path: Path) -> None:
    job = _stub(tmp_path)
    moments = [Moment("stub", 1, Stage.PLANNED), Moment("stub", 2, Stage.COMMITTED)]
    ordeal = run_through_kills(job, moments)
    assert ordeal.kills == moments
    assert ordeal.unfinished[0] == "stub/1"
    assert ordeal.said == "done\n"
    assert job.committed("stub") == {0, 1, 2, 3}


def test_a_job_is_killed_when_the_world_sees_that_it_writes(tmp_path: Path) -> None:
    job = _stub(tmp_path)
    unfinished = kill_while_writing(job, lambda: job.planned("stub"), batches=2)
    assert unfinished in (["stub/2"], ["stub/3"])
    assert job.committed("stub") == set(range(int(unfinished[0][-1])))


def test_a_moment_that_has_passed_waits_for_the_next_batch(tmp_path: Path) -> None:
    job = _stub(tmp_path)
    run_through_kills(job, [])
    moment = Moment("stub", 1, Stage.PLANNED)
    assert moment.ahead_of(job).batch == 4
    assert run_through_kills(job, [moment]).kills == []


def test_the_first_moment_of_every_seed_is_within_a_batch() -> None:
    for seed in range(50):
        first, *others = drawn_moments(seed, ["a", "b"], batches=6, kills=3)
        assert first.stage is Stage.PLANNED
        assert first.delay_seconds < 0.3
        assert [first.batch, *(m.batch for m in others)] == sorted(
            {first.batch, *(m.batch for m in others)}
        )
