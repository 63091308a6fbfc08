"""Rebuild the transaction indexes of segments that a crash, or damage, leaves in doubt.

An index gets its entry after the marker is in the log, so that a crash may lose it; and without it
a read_committed consumer would read aborted records. Entries before the recovery point are on the
disk for good. The rest follows from the log: from its batches, and the markers of their
transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import DamagedFileError
from storage.producer.producer_recovery import replay_segment
from storage.producer.producer_state import ProducerState

if TYPE_CHECKING:
    from storage.log.segments import Segments
    from storage.producer.snapshot_files import Snapshots
    from storage.segment.aborted_index import AbortedIndex, AbortedTransaction


def rebuild_aborted(
    segments: Segments, snapshots: Snapshots, doubtful: set[int], recovery_point: int
) -> None:
    """Rebuild the indexes of the segments whose base offsets are in `doubtful`.

    Reads the headers from the newest snapshot before them on. Entries for markers before the
    recovery point are kept: their transactions may have begun in deleted segments.
    """
    first = min(doubtful)
    state = ProducerState()
    position = _restore(state, snapshots, first)
    if position is None:
        position = segments[0].base_offset
    for index in range(segments.floor(position), len(segments)):
        segment = segments[index]
        found = replay_segment(state, segment, position)
        if segment.base_offset in doubtful:
            kept = _trusted(segment.aborted_index, segment.base_offset, recovery_point)
            merged = {entry.last_offset: entry for entry in (*kept, *found)}
            segment.aborted_index.replace([merged[offset] for offset in sorted(merged)])


def _restore(state: ProducerState, snapshots: Snapshots, offset: int) -> int | None:
    for candidate in reversed(snapshots.offsets):
        if candidate <= offset:
            try:
                state.restore(snapshots.read(candidate))
            except (DamagedFileError, FileNotFoundError):
                continue  # logged when the producers are rebuilt
            return candidate
    return None


def _trusted(
    index: AbortedIndex, base_offset: int, recovery_point: int
) -> list[AbortedTransaction]:
    try:
        entries = index.entries()
    except DamagedFileError:
        return []
    return [entry for entry in entries if base_offset <= entry.last_offset < recovery_point]
