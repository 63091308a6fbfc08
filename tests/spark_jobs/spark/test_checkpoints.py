"""Whose checkpoint a directory is, and what is said of one that cannot be read."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.spark import checkpoints
from spark_jobs.spark.checkpoints import FILE, claim_checkpoint
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = {"job": "route", "topic": "flights"}

HOLDER = """
import sys
from pathlib import Path
from spark_jobs.spark.checkpoints import claim_checkpoint
claim_checkpoint(Path(sys.argv[1]), {"job": "route", "topic": "flights"})
print("held", flush=True)
sys.stdin.read()
"""


def test_a_checkpoint_is_for_one_identity(tmp_path: Path) -> None:
    claim_checkpoint(tmp_path, IDENTITY)
    claim_checkpoint(tmp_path, IDENTITY)
    with pytest.raises(BadOptionError, match="with topic 'flights', and here it is 'visits'"):
        claim_checkpoint(tmp_path, {**IDENTITY, "topic": "visits"})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff"])
def test_a_damaged_note_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(BadOptionError, match=r"job\.json is damaged: "):
        claim_checkpoint(tmp_path, IDENTITY)


@pytest.mark.process
def test_a_checkpoint_is_for_one_process_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with monkeypatch.context() as patch:
            patch.setattr(checkpoints, "LOCK_SECONDS", 0.0)
            words = rf"^--checkpoint: {tmp_path} is in use by another run \(process {holder.pid}\)"
            with pytest.raises(JobError, match=words):
                claim_checkpoint(tmp_path, IDENTITY)
        killer = threading.Timer(0.2, holder.kill)
        killer.start()
        claim_checkpoint(tmp_path, IDENTITY)
        killer.join()
