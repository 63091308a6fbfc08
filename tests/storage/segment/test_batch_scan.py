"""Batches as they are walked after a crash, in pieces that need not end where a batch does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.topic import TopicConfig
from storage.segment.batch_scan import CHUNK_BYTES
from tests.storage.produced import all_offsets, append, batch, new_log, reopen

if TYPE_CHECKING:
    from pathlib import Path

LARGE = TopicConfig()


@pytest.mark.parametrize("before", [0, 1, 1000, CHUNK_BYTES - 100, CHUNK_BYTES])
def test_batches_larger_than_what_is_read_at_once_are_kept(tmp_path: Path, before: int) -> None:
    log = new_log(tmp_path, LARGE)
    for size in (before, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES):
        if size:
            append(log, batch(1, value=bytes(size)))
    append(log, batch(3))
    end_offset = log.log_end_offset
    log.release()

    again, outcome = reopen(tmp_path, LARGE)

    assert (again.log_end_offset, outcome.bytes_cut) == (end_offset, 0)
    assert all_offsets(again) == list(range(end_offset))
