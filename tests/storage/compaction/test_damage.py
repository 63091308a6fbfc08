"""A log with a batch that is not what was written is not cleaned: that would make it look sound."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from storage.errors import DamagedFileError
from tests.storage.compaction.compacting import compact, put
from tests.storage.produced import NOW_MS, SMALL, new_log

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = dataclasses.replace(SMALL, cleanup_policy=frozenset({"compact"}))


@pytest.mark.parametrize("was_cleaned", [False, True])
def test_a_batch_whose_checksum_is_wrong_ends_a_cleaning(tmp_path: Path, was_cleaned: bool) -> None:
    log = new_log(tmp_path, CONFIG)
    put(log, a="1" * 50, b="2")
    if was_cleaned:  # and is no more in the part that is read for keys
        log.roll(NOW_MS)
        compact(log)
    put(log, c="3", d="4")
    log.roll(NOW_MS)
    path = next((tmp_path / "flights-0").glob("*0.log"))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1" * 50, b"1" * 49 + b"0"))

    with pytest.raises(DamagedFileError, match="the checksum of the batch at offset 0 is wrong"):
        compact(log)
