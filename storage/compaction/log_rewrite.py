"""Clean one log: read its dirty part for the newest offset of each key, then rewrite the log.

    segments   |0      |100    |200    |300    |400 (active)
    clean      |...............|                first dirty offset 200
    map                        |200    |300    |
    rewritten  |0 and 100 and 200      |300    |     into as many segments as are needed

The map has a fixed size. If the keys of the dirty part do not fit, it reaches as far as they do;
records behind that stay as they are, and the next cleaning begins there.

Nothing here touches a file that the broker uses: the new ones end in `.cleaned`. While the disk
writes one new segment, the next is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.errors import ApiError
from protocol.records.batch import DELAY_BIT, parse_header
from storage.compaction.batch_filter import BatchFilter, Whole
from storage.compaction.cleaned_segment import CleanedSegment
from storage.compaction.columns.key_hashes import KeyHasher
from storage.compaction.delay_bounds import find_bounds
from storage.compaction.delay_filter import DelayFilter
from storage.compaction.dirty_keys import map_keys
from storage.compaction.job import CleanedGroup, CleaningDone
from storage.compaction.kept_records import Horizons, RecordSieve
from storage.compaction.segment_groups import group_segments
from storage.compaction.source_reader import SourceReader
from storage.compaction.transactions import OngoingTransactions
from storage.delays.delay_index import DelayKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from protocol.records.batch import BatchHeader
    from storage.compaction.job import CleaningJob, SourceSegment
    from storage.filesystem import FileSystem


def when_asked(work: Callable[[], None]) -> Callable[[], None]:
    """Wait for the disk on the caller's thread, once the next segment is written."""
    return work


def clean(
    job: CleaningJob,
    filesystem: FileSystem,
    throttle: Callable[[int], None],
    begin: Callable[[Callable[[], None]], Callable[[], None]] = when_asked,
) -> Iterator[CleanedGroup | CleaningDone]:
    """Write one new segment for each item, which the caller puts in place; then the end.

    `throttle` gets the number of bytes just read or written, and may block. `begin` gets a function
    that waits for the disk, may start it on another thread, and returns a function that waits for
    its end. Raises ApiError (DamagedFileError among them) if the log is not sound, and OSError if
    the disk fails or is full; the unfinished segment leaves its files behind.
    """
    reader = SourceReader(job, filesystem, throttle)
    hasher = KeyHasher(bytes.fromhex(job.hash_seed))
    newest, clean_end_offset = map_keys(job, reader, hasher)
    horizons = Horizons(job.now_ms, job.delete_retention_ms, clean_end_offset)
    decide = BatchFilter(RecordSieve(newest, hasher, horizons), horizons, job.producers)
    transactions = OngoingTransactions(reader.aborted_transactions())
    delays = DelayFilter(find_bounds(job, filesystem), decide, transactions)
    rewriting = _Rewriting(decide, transactions, delays, throttle)
    cleanable = [one for one in job.segments if one.base_offset < clean_end_offset]
    following = [one.base_offset for one in job.segments[len(cleanable) :]]
    end_offset = following[0] if following else job.end_offset
    bytes_written = 0
    under_way: list[_Flush] = []  # one at most
    for group in group_segments(cleanable, end_offset, job.segment_limits):
        try:
            target = CleanedSegment(filesystem, job, group[0].base_offset)
            rewriting.rewrite(group, reader, target)
            indexes = target.finish(group[-1].modified_ms)
        except (ApiError, OSError):
            # Earlier segments are whole, and swapping them in makes room on a full disk.
            yield from map(_flushed, under_way)
            raise
        yield from map(_flushed, under_way)
        bytes_written += target.size
        sources = tuple(segment.base_offset for segment in group)
        cleaned = CleanedGroup(sources, target.size, *indexes, group[-1].modified_ms)
        under_way = [_Flush(cleaned, begin(target.sync))]
    yield from map(_flushed, under_way)
    yield CleaningDone(clean_end_offset, reader.bytes_read, bytes_written, decide.keyless)


class _Flush(NamedTuple):
    """A new segment that is written, and may not be on the disk yet."""

    cleaned: CleanedGroup
    wait: Callable[[], None]


def _flushed(flush: _Flush) -> CleanedGroup:
    flush.wait()
    return flush.cleaned


class _Rewriting:
    """The walk over all segments: decisions depend on what came before."""

    def __init__(
        self,
        decide: BatchFilter,
        transactions: OngoingTransactions,
        delays: DelayFilter,
        throttle: Callable[[int], None],
    ) -> None:
        self._decide = decide
        self._transactions = transactions
        self._delays = delays
        self._throttle = throttle

    def rewrite(
        self, group: list[SourceSegment], reader: SourceReader, target: CleanedSegment
    ) -> None:
        """Put what stays of `group` into `target`."""
        last = next((segment for segment in reversed(group) if segment.size), None)
        for segment in group:
            left = segment.size
            for batches in reader.batches(segment):
                self._decide.look_at(batches)
                for header, batch in batches:
                    left -= len(batch)
                    is_last = left == 0 and segment is last
                    self._put(header, batch, target, is_last=is_last)

    def _put(
        self, header: BatchHeader, batch: memoryview, target: CleanedSegment, *, is_last: bool
    ) -> None:
        stays = self._stays(header, batch, target, is_last=is_last)
        if stays is Whole.DROPPED:
            return
        if stays is Whole.KEPT:
            written = target.append(header, batch)
        else:
            written = target.append(parse_header(stays), stays)
        if written:
            self._throttle(written)

    def _stays(
        self, header: BatchHeader, batch: memoryview, target: CleanedSegment, *, is_last: bool
    ) -> Whole | bytearray:
        if header.attributes & DELAY_BIT and kind_of(header) is not DelayKind.ENDED:
            return self._delays.apply(header, batch, is_last=is_last)
        if header.is_control:
            is_discardable, aborted = self._transactions.end(header, batch)
            if aborted is not None:
                target.note_aborted(aborted)
        else:
            is_discardable = self._transactions.is_aborted(header)
        return self._decide.apply(header, batch, is_discardable=is_discardable, is_last=is_last)
