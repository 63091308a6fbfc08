"""After a crash: leader epochs that the batches of the log contradict.

The log and `leader-epoch-checkpoint` reach the disk each at its own time. A power failure may bring
back batches that were cut off while the file says already which epoch followed at the cut, or take
away what an epoch began with. A replica that believed such a file would call records of one leader
those of another, and never find where its log parts from others (KIP-101).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.batch import HEADER_BYTES, parse_header

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader
    from storage.log.leader_epochs import LeaderEpochs
    from storage.log.segments import Segments


def first_contradiction(
    epochs: LeaderEpochs, segments: Segments, bounds: tuple[int, int], loaded: int
) -> int | None:
    """From where on epochs and batches do not agree; None when they do. Reads a few headers.

    `bounds` are log start and log end offset; the epoch of the former may have begun before it, and
    so may the batch in which it lies. Without records from there on there is nothing to contradict.
    `loaded` of the epochs come from the file, and the others from what recovery has read: of the
    former the last is looked at, and all of the latter.
    """
    start_offset, end_offset = bounds
    entries = [entry for entry in epochs.entries() if entry[1] < end_offset]
    for count in range(max(loaded, 1), len(entries) + 1):
        if not _is_sound(segments, entries[:count], start_offset):
            return entries[count - 1][1]
    last = _header_at(segments, end_offset - 1) if start_offset < end_offset else None
    if last is None:
        return None
    known = epochs.epoch_at(max(last.base_offset, start_offset))
    return end_offset if known != last.partition_leader_epoch else None


def mend(epochs: LeaderEpochs, segments: Segments, offset: int, start_offset: int) -> None:
    """Drop the epochs from `offset` on, and earlier ones that the batches contradict.

    Later epochs are noted from the batches; the caller saves.
    """
    epochs.truncate_from_end(offset)
    while not _is_sound(segments, epochs.entries(), start_offset):
        epochs.truncate_from_end(epochs.entries()[-1][1])
    entries = epochs.entries()
    start = entries[-1][1] if entries else start_offset
    for index in range(segments.floor(start), len(segments)):
        segment = segments[index]
        place = segment.locate(start)
        if place is None:
            continue
        for _, header in segment.walk(place.position, segment.size):
            epochs.note(header.partition_leader_epoch, header.base_offset)


def _is_sound(segments: Segments, entries: list[tuple[int, int]], start_offset: int) -> bool:
    """Return whether the last epoch begins where the batches show; true if there is none.

    Compaction may have removed all batches of an epoch, and of the one before: then the batches
    that follow are of a newer epoch, and those before of an older one.
    """
    if not entries:
        return True
    epoch, start = entries[-1]
    first = _header_at(segments, start)
    if first is not None and first.partition_leader_epoch < epoch:
        return False
    before = _header_at(segments, start - 1) if start > start_offset else None
    if before is None or before.base_offset >= start:
        return True
    return len(entries) > 1 and before.partition_leader_epoch <= entries[-2][0]


def _header_at(segments: Segments, offset: int) -> BatchHeader | None:
    found = segments.locate(offset)
    if found is None:
        return None
    segment, place = found
    return parse_header(segment.file.read_at(place.position, HEADER_BYTES))
