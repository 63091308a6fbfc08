"""Bounds within which compaction may touch a log in which records wait, or have waited.

The delivery position follows from the log (`broker.delivery.waiting_records`), and cleaning must
not change it. A record that waits takes no part in compaction: its key counts from its delivery on,
at the offset at which it is delivered. Among the segments to be cleaned, the last delivered batch
alone shows from which offset on records wait:

    offset   5      10       20         30        40         50
             waits  waits    delivered  waits     delivered  delivered
                             (5)                  (30)       up to (30), waits from 10 on
                             ^ delivered from     ^ these three keep their times and points
                    ^ waiting from: from here on nothing that waits, cancels or commits is touched

- Before `waiting_from` nothing waits: batches that wait, cancel, or record dead-letter progress
  are dropped, and markers are treated as in other logs.
- From `waiting_from` on they stay, byte for byte: a new leader reads them.
- Delivered records are ordinary data with keys. From `delivered_from` on, the last delivered batch
  before `waiting_from`, each batch keeps its due time and point, whatever becomes of its records:
  later waiting records are due no earlier. Before that, a batch that loses records stops being a
  delivered batch.
- Of the batches that record dead-letter progress, the last stays.

Each replica cleans its own log by the contents of that log, below its high watermark and on its
disk. A log copied from a leader that had cleaned further lacks some of these batches, which is
equivalent to cleaning it here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.delays.delivered_batch import parse_point
from protocol.records.batch import DELAY_BIT, HEADER_BYTES, parse_header
from storage.compaction.columns.opened_batches import check_batch
from storage.delays.delay_index import DelayEntry, DelayIndex, DelayKind, kind_of
from storage.errors import DamagedDelaysError
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.compaction.job import CleaningJob
    from storage.filesystem import FileSystem


class DelayBounds(NamedTuple):
    """Offsets from which on it all has to stay."""

    waiting_from: int
    delivered_from: int
    relayed_from: int


def find_bounds(job: CleaningJob, filesystem: FileSystem) -> DelayBounds:
    """The bounds of one cleaning, from the delay indexes of the segments that it may touch."""
    indexes = []
    for segment in job.segments:
        path = file_names.segment_file(job.directory, segment.base_offset, file_names.DELAY_INDEX)
        if filesystem.exists(path):
            size = filesystem.open(path).size()
            index = DelayIndex(filesystem, job.directory, segment.base_offset, size)
            indexes.append((segment.base_offset, index))
    relayed = _last(indexes, DelayKind.RELAYED, job.end_offset)
    delivered = _last(indexes, DelayKind.DELIVERED, job.end_offset)
    waiting_from = delivered_from = 0
    if delivered is not None:
        waiting_from = parse_point(_batch(job, filesystem, *delivered)).waiting_from
        before = _last(indexes, DelayKind.DELIVERED, waiting_from)
        if before is not None:
            _batch(job, filesystem, *before)
        delivered_from = 0 if before is None else before[1].offset
    return DelayBounds(waiting_from, delivered_from, 0 if relayed is None else relayed[1].offset)


def _last(
    indexes: Sequence[tuple[int, DelayIndex]], kind: DelayKind, before: int
) -> tuple[int, DelayEntry] | None:
    """The last batch of a kind before an offset, with the base offset of its segment."""
    for base_offset, index in reversed(indexes):
        entry = index.last_of(kind, before) if base_offset < before else None
        if entry is not None:
            return base_offset, entry
    return None


def _batch(
    job: CleaningJob, filesystem: FileSystem, base_offset: int, entry: DelayEntry
) -> memoryview:
    """The delivered batch of an entry, checked. DamagedDelaysError if there is no such batch."""
    path = file_names.segment_file(job.directory, base_offset, file_names.LOG)
    file = filesystem.open(path)
    head = file.read_at(entry.position, HEADER_BYTES)
    if len(head) < HEADER_BYTES or parse_header(head).base_offset != entry.offset:
        text = f"{path}: no batch of offset {entry.offset} at {entry.position}"
        raise DamagedDelaysError(text, base_offset)
    header = parse_header(head)
    batch = memoryview(file.read_at(entry.position, header.size_in_bytes))
    check_batch(header, batch)
    if not header.attributes & DELAY_BIT or kind_of(header) is not entry.kind:
        raise DamagedDelaysError(f"{path}: {entry.offset} was not delivered", base_offset)
    return batch
