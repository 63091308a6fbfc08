"""Recovery of one segment after a crash: read the unflushed part, truncate the unsound part.

Batches before the recovery point are on the disk and not read again. From there on each batch is
checked, and the first that is not sound ends the log: the file is cut there, and both indexes get
the entries that the crash lost.

    segment          |batch|batch|batch|batch|batch|bat
    index entries          ^           ^           ^ (perhaps lost, perhaps torn)
    recovery point               *
    read                   |-------------------------->   from the last entry before the point
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.records.batch import DELAY_BIT
from storage.errors import DamagedFileError
from storage.segment.batch_scan import CheckedScan

if TYPE_CHECKING:
    from storage.log.leader_epochs import LeaderEpochs
    from storage.segment.segment import Segment


class SegmentRecovery(NamedTuple):
    """Result of the recovery of one segment."""

    next_offset: int
    bytes_read: int
    bytes_cut: int
    problem: str | None
    """Reason for the truncation; None if nothing was cut."""
    has_markers: bool
    """True if transactions may have ended in the range that was read."""


def recover_segment(
    segment: Segment, size: int, recovery_point: int, epochs: LeaderEpochs
) -> SegmentRecovery:
    """Check the batches of a file of `size` bytes from the recovery point on.

    Epochs found on the way go into `epochs`, for the caller to save.
    """
    segment.size = size
    start = _start_position(segment, recovery_point)
    segment.forget_timestamps()
    segment.size = start
    scan = CheckedScan(segment.file, segment.base_offset, start, size)
    next_offset = segment.base_offset
    has_markers = False
    are_delays_whole = segment.delays is None or segment.delays.salvage(start)
    for position, header in scan:
        has_markers = has_markers or header.is_control
        if header.attributes & DELAY_BIT:
            segment.note_delay(header, position)
        segment.account_header(header)
        epochs.note(header.partition_leader_epoch, header.base_offset)
        next_offset = header.next_offset
    if scan.position < size:
        segment.file.truncate(scan.position)
    if not are_delays_whole:
        _rebuild_delays(segment)
    segment.seal()
    cut = size - scan.position
    return SegmentRecovery(next_offset, size - start, cut, scan.problem, has_markers)


def _rebuild_delays(segment: Segment) -> None:
    """Rebuild the delay index: entries it lost may lie before the range that was read."""
    try:
        segment.rebuild_delays()
    except DamagedFileError:  # reads there report it, as long as it lasts
        assert segment.delays is not None
        segment.delays.make_void()


def _start_position(segment: Segment, recovery_point: int) -> int:
    """Position to read from; the indexes keep only the entries that lead to batches before it."""
    offsets, times = segment.offset_index, segment.time_index
    offsets.salvage()
    times.salvage()
    offsets.truncate_to(recovery_point)
    entry = offsets.last()
    if len(offsets) and _begins_batch(segment, entry.position, entry.offset):
        times.truncate_to(entry.offset + 1)
        return entry.position
    offsets.clear()
    times.clear()
    return 0


def _begins_batch(segment: Segment, position: int, last_offset: int) -> bool:
    try:
        found = next(segment.walk(position, segment.size), None)
    except DamagedFileError:
        return False
    return found is not None and found[1].last_offset == last_offset
