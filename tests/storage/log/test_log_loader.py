"""Logs that begin anew when they are loaded, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.storage.produced import append, batch, new_log, reopen

if TYPE_CHECKING:
    from pathlib import Path

BEYOND = 500


def test_the_segments_of_a_log_that_is_emptied_go_for_its_start_and_not_for_a_cut(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    for _ in range(40):
        append(log, batch(2, value=b"x" * 30))
    assert len(log.segments) > 1

    _, outcome = reopen(tmp_path, log_start_offset=BEYOND)

    emptied, *removed = outcome.notes
    assert emptied.endswith(f"ends at 80, before its log start offset {BEYOND}: emptied")
    assert len(removed) == len(log.segments)
    for note in removed:
        assert note.endswith(f"bytes lies before the log start offset {BEYOND}: removed")
