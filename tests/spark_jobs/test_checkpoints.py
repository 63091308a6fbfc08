"""Whose checkpoint a directory is, and what is said of one that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.checkpoints import FILE, claim_checkpoint
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = {"job": "route", "topic": "flights"}


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
