"""Up to where a log counts as flushed, when it is cut while a thread flushes it."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

from tests.storage.produced import append, batch, new_log

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

MOMENT_SECONDS = 0.3
"""What the flush waits for the truncation, which may have to wait for the flush in turn."""


class Cutting(int):
    """A count of truncations that has the log cut by another thread once it was compared."""

    log: Log
    cutting: Thread

    def __eq__(self, other: object) -> bool:
        is_equal = int(self) == other
        self.cutting = Thread(target=self.log.truncate_to, args=(4,))
        self.cutting.start()
        self.cutting.join(MOMENT_SECONDS)
        return is_equal

    __hash__ = int.__hash__


def test_a_log_that_is_cut_when_its_flush_ends_is_flushed_up_to_the_cut(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(5):
        append(log, batch(2))
    before = Cutting(log.offsets.truncations)
    before.log = log

    log.flushes._sync(list(log.segments), log.log_end_offset, before)
    before.cutting.join()

    assert (log.log_end_offset, log.recovery_point) == (4, 4)
    append(log, batch(2))
    assert log.recovery_point == 4
