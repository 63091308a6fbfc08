"""Rebuild of a partition's producer state: newest sound snapshot, then the log after it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from protocol.records.control import ControlType, parse_marker
from storage.errors import DamagedFileError
from storage.log.segments import WHOLE_LOG
from storage.producer.producer import Marker
from storage.producer.producer_state import ProducerState
from storage.segment.batch_scan import CHUNK_BYTES

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.log.segments import Segments
    from storage.producer.snapshot_files import Snapshots
    from storage.segment.aborted_index import AbortedTransaction
    from storage.segment.segment import Segment

LOGGER = logging.getLogger(__name__)


def read_marker(header: BatchHeader, batch: Buffer, base_offset: int) -> Marker | None:
    """Return the end of a transaction that a control batch says; None for another kind of it."""
    marker = parse_marker(batch)
    if marker is None:
        return None
    return Marker(
        header.producer_id,
        header.producer_epoch,
        marker.coordinator_epoch,
        marker.type == ControlType.COMMIT,
        base_offset,
        header.max_timestamp,
    )


def rebuild(
    producers: ProducerState, snapshots: Snapshots, segments: Segments, bounds: tuple[int, int]
) -> None:
    """Restore `producers` as of the end of `bounds`, (log start, log end offset)."""
    read = read_producers(snapshots, segments, bounds)
    remove_others(snapshots, bounds)
    producers.become(read)


def read_producers(
    snapshots: Snapshots, segments: Segments, bounds: tuple[int, int]
) -> ProducerState:
    """Producer state at the end of `bounds`, (log start, log end offset).

    The log may go on after that. Damaged snapshots are removed and logged; the one before, or the
    whole log, stands in.
    """
    log_start_offset, log_end_offset = bounds
    producers = ProducerState()
    position = _restore(producers, snapshots, bounds)
    if position is None:
        position = log_start_offset
    if position < log_end_offset:
        last = segments.floor(log_end_offset)
        for index in range(segments.floor(position), last + 1):
            replay_segment(producers, segments[index], position, log_end_offset)
    return producers


def remove_others(snapshots: Snapshots, bounds: tuple[int, int]) -> None:
    """Remove the snapshots past the log's end and those up to its start.

    A producer whose records are all gone may start over (KIP-360), and one whose newest records
    were lost must not be validated against older state.
    """
    log_start_offset, log_end_offset = bounds
    snapshots.remove_after(log_end_offset)
    snapshots.remove_up_to(log_start_offset)


def _restore(producers: ProducerState, snapshots: Snapshots, bounds: tuple[int, int]) -> int | None:
    log_start_offset, log_end_offset = bounds
    while (offset := snapshots.latest(log_end_offset) or 0) > log_start_offset:
        try:
            producers.restore(snapshots.read(offset))
        except (DamagedFileError, FileNotFoundError) as error:
            LOGGER.warning("%s: %s; using an older one", snapshots.path(offset), error)
            snapshots.remove(offset)
        else:
            return offset
    return None


def replay_segment(
    producers: ProducerState, segment: Segment, from_offset: int, to_offset: int = WHOLE_LOG
) -> list[AbortedTransaction]:
    """Note whole batches of [from, to); returns the transactions that were aborted there."""
    aborted: list[AbortedTransaction] = []
    place = segment.locate(from_offset)
    if place is None:
        return aborted
    for position, header in segment.walk(place.position, segment.size, CHUNK_BYTES):
        if header.last_offset >= to_offset:
            break
        if header.producer_id < 0:
            continue
        if not header.ends_transaction:
            producers.update(header, header.base_offset)
            continue
        batch = segment.file.read_at(position, header.size_in_bytes)
        marker = read_marker(header, batch, header.base_offset)
        ended = None if marker is None else producers.end_transaction(marker)
        if ended is not None:
            aborted.append(ended)
    return aborted
