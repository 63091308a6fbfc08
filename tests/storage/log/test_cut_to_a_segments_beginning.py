"""A log is cut where a segment then begins: what a power failure brings back does not count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.storage.produced import all_offsets, append, batch, new_log, reopen

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

CUT = 6


def cut_and_rolled(directory: Path) -> tuple[Log, Path, bytes]:
    """A log of ten records of epoch 0, cut to six, and four of epoch 1 in the next segment.

    Also the first segment's file, and what it held before the cut.
    """
    log = new_log(directory)
    for _ in range(5):
        append(log, batch(2))
    log.flush()
    path = directory / "flights-0" / f"{0:020}.log"
    before = path.read_bytes()
    log.truncate_to(CUT)
    log.roll(0)
    for _ in range(2):
        append(log, batch(2, value=b"of the next leader"), epoch=1)
    return log, path, before


def test_batches_that_were_cut_off_and_are_back_are_cut_off_again(tmp_path: Path) -> None:
    log, path, before = cut_and_rolled(tmp_path)
    records = log.read(0, 10_000, log.log_end_offset).tobytes()
    path.write_bytes(before)

    again, outcome = reopen(tmp_path, recovery_point=CUT, high_watermark=CUT)

    assert all_offsets(again) == list(range(10))
    assert again.read(0, 10_000, again.log_end_offset).tobytes() == records
    assert again.epochs.entries() == [(0, 0), (1, CUT)]
    assert outcome.notes == [
        (
            f"flights-0: {path} goes on to offset 10, beyond the beginning of the next segment: "
            f"cut off at {CUT} before, and cut off again"
        )
    ]


@pytest.mark.interpreted
def test_recovery_point_moves_only_once_the_cut_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, _, _ = cut_and_rolled(tmp_path)
    synced: list[int] = []
    monkeypatch.setattr(
        type(log.segments.active), "sync", lambda segment: synced.append(segment.base_offset)
    )
    assert log.recovery_point == CUT

    log.flush()

    assert log.recovery_point == log.log_end_offset == 10
    assert synced == [0, CUT]


@pytest.mark.interpreted
def test_segment_that_was_flushed_is_not_flushed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, _, _ = cut_and_rolled(tmp_path)
    log.flush()
    synced: list[int] = []
    monkeypatch.setattr(
        type(log.segments.active), "sync", lambda segment: synced.append(segment.base_offset)
    )
    append(log, batch(2), epoch=1)

    log.flush()

    assert synced == [CUT]
