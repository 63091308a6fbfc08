"""Make a `Log` of a partition's directory: create it, open it, or recover it after a crash."""

from __future__ import annotations

import logging
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING

from storage.directory import partition_metadata
from storage.errors import DamagedFileError
from storage.log import epoch_recovery
from storage.log.leader_epochs import LeaderEpochs
from storage.log.log import Log
from storage.log.log_contents import LogContents
from storage.log.log_files import LogFiles
from storage.log.log_offsets import NEVER_CLEANED, LogOffsets
from storage.log.log_rules import COMPACT, has_delays
from storage.log.log_settings import LogPlace, LogSettings
from storage.log.segments import Segments
from storage.producer.aborted_recovery import rebuild_aborted
from storage.producer.producer_recovery import rebuild
from storage.producer.producer_state import ProducerState
from storage.producer.snapshot_files import Snapshots
from storage.segment import file_names
from storage.segment.aborted_index import ENTRY
from storage.segment.batch_scan import CheckedScan
from storage.segment.closed_segments import end_if_whole
from storage.segment.recovery import recover_segment
from storage.segment.segment import Segment
from storage.segment.segment_files import PartitionFiles, SegmentFiles, survey

if TYPE_CHECKING:
    from config.topic import TopicConfig

LOGGER = logging.getLogger(__name__)

SPARSE_FILES = {file_names.TRANSACTION_INDEX, file_names.DELAY_INDEX}
"""Indexes that most segments do not have."""


@dataclass(frozen=True, slots=True)
class LoadHints:
    """Entries of the log directory's checkpoint files for one partition."""

    was_clean: bool
    """The last process closed everything in order; nothing needs to be checked."""
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    cleaned_offset: int = NEVER_CLEANED
    are_delays_known: bool = True
    """False after a clean stop that has not said what delay indexes the log has."""


@dataclass(slots=True)
class LoadOutcome:
    """Cost and findings of loading one log."""

    bytes_read: int = 0
    bytes_cut: int = 0
    """From the ends of files."""
    bytes_removed: int = 0
    """With whole segments."""
    notes: list[str] = field(default_factory=list)
    """One line for each thing that was not as it should be."""


def create_log(place: LogPlace, config: TopicConfig, settings: LogSettings, now_ms: int) -> Log:
    """Create the directory and an empty log in it."""
    with place.directory:
        filesystem = place.directory.disk.filesystem
        filesystem.make_directory(place.path)
        if place.topic_id is not None:
            partition_metadata.write(filesystem, place.path, place.topic_id)
        segment = Segment(place.directory.disk, place.path, 0, config, now_ms)
        segment.create()
    epochs = LeaderEpochs(place.directory.disk, place.path)
    snapshots = Snapshots(filesystem, place.path, ())
    files = LogFiles(place, Segments([segment]), epochs, snapshots)
    contents = LogContents(files, LogOffsets(0, 0, 0, 0), ProducerState())
    return Log(contents, config, settings)


def load_log(
    place: LogPlace, config: TopicConfig, settings: LogSettings, hints: LoadHints
) -> tuple[Log, LoadOutcome]:
    """Open the log at `place`; the topic id is read from the directory.

    DirectoryRefusedError when it holds what this broker cannot read.
    """
    with place.directory:
        return _Loader(place, config, hints).load(settings)


class _Loader:
    """Steps of loading one log, in order, and their common state."""

    def __init__(self, place: LogPlace, config: TopicConfig, hints: LoadHints) -> None:
        self.place = place
        self.config = config
        self.hints = hints
        self.disk = place.directory.disk
        self.path = place.path
        self.outcome = LoadOutcome()
        self.epochs = LeaderEpochs(self.disk, self.path)
        self.loaded_epochs = self._load_epochs()
        self._is_to_check_delays = False
        self._may_be_compacted = (
            COMPACT in config.cleanup_policy or hints.cleaned_offset != NEVER_CLEANED
        )
        self.doubtful: set[int] = set()
        """Base offsets of segments whose transaction index may be wrong."""

    def load(self, settings: LogSettings) -> tuple[Log, LoadOutcome]:
        found = survey(self.disk.filesystem, self.path)
        self._is_to_check_delays = not self.hints.are_delays_known and (
            has_delays(self.config)
            or any(file_names.DELAY_INDEX in one.index_sizes for one in found.segments.values())
        )
        segments = self._open_segments(found)
        end_offset = self._adopt_or_recover(segments, found)
        start_offset = max(self.hints.log_start_offset, segments[0].base_offset)
        if start_offset > end_offset:
            self._note(f"ends at {end_offset}, before its log start offset {start_offset}: emptied")
            self._remove(segments, found, f"lies before the log start offset {start_offset}")
            segments = [self._new_segment(start_offset)]
            end_offset = start_offset
        contents = LogContents(
            LogFiles(
                self._identified(),
                Segments(segments),
                self.epochs,
                Snapshots(self.disk.filesystem, self.path, found.snapshots),
            ),
            self._offsets(start_offset, end_offset),
            ProducerState(),
        )
        self._settle_epochs(contents)
        self._settle_producers(contents)
        return Log(contents, self.config, settings), self.outcome

    def _offsets(self, start_offset: int, end_offset: int) -> LogOffsets:
        """Offsets from the checkpoints, within the bounds of this log."""
        hints = self.hints
        return LogOffsets(
            start_offset,
            end_offset,
            end_offset if hints.was_clean else min(hints.recovery_point, end_offset),
            min(max(hints.high_watermark, start_offset), end_offset),
            min(hints.cleaned_offset, end_offset),
        )

    def _open_segments(self, files: PartitionFiles) -> list[Segment]:
        if not files.segments:
            segment = self._new_segment(self.hints.log_start_offset)
            files.segments[segment.base_offset] = SegmentFiles(0, segment.created_ms)
            return [segment]
        return [
            Segment(self.disk, self.path, base_offset, self.config, found.modified_ms)
            for base_offset, found in files.segments.items()
        ]

    def _adopt_or_recover(self, segments: list[Segment], files: PartitionFiles) -> int:
        """Open all segments; returns the log end offset."""
        following = [segment.base_offset for segment in segments[1:]]
        for index, segment in enumerate(segments):
            found = files.segments[segment.base_offset]
            next_base = following[index] if index < len(following) else None
            # One that ends at the recovery point may have been cut to that, and not flushed since.
            is_flushed = next_base is not None and next_base < self.hints.recovery_point
            if self.hints.was_clean or is_flushed:
                self._adopt(segment, found, next_base)
            elif not found.size and not SPARSE_FILES & found.index_sizes.keys():
                offsets = found.index_sizes.get(file_names.OFFSET_INDEX)
                times = found.index_sizes.get(file_names.TIME_INDEX)
                segment.adopt_empty(offsets, times)
                self._check_gap(segment, segment.base_offset, next_base)
            elif self._recover(segment, found, next_base):
                self._remove(segments[index + 1 :], files, "follows the cut")
                del segments[index + 1 :]
                break
        # Unless it was just read: its end follows from the batches after the last index entry.
        if self.hints.was_clean:
            return self._end_after_clean_stop(segments[-1])
        offset = segments[-1].next_offset()
        if not self.outcome.bytes_cut:
            self._check_end_after_crash(segments[-1], offset)
        return offset

    def _check_end_after_crash(self, segment: Segment, offset: int) -> None:
        """Report records that were flushed, or committed, and are gone without a trace."""
        expected = {
            "recovery point": self.hints.recovery_point,
            "high watermark": self.hints.high_watermark,
        }
        name, beyond = max(expected.items(), key=itemgetter(1))
        if self.hints.log_start_offset <= offset < beyond:  # else it is emptied, which is logged
            self._note(
                f"{segment.path} ends at offset {offset}, before its {name} {beyond}: "
                f"{_missing(offset, beyond)}",
                logging.ERROR,
            )

    def _end_after_clean_stop(self, segment: Segment) -> int:
        """The log end offset; bytes added to the file since its broker stopped are cut off.

        Raises DamagedFileError if flushed records are gone: they may be on a replica, or in a
        backup, as long as this log does not go on without them.
        """
        offset, end = segment.end_of_batches()
        flushed, size = self.hints.recovery_point, segment.size
        if offset < flushed:
            found = "the file ends" if end == size else "no whole batch is"
            raise DamagedFileError(
                f"{segment.path}: {found} at byte {end}, though records up to offset "
                f"{flushed - 1} were written"
            )
        if end < size:
            segment.file.truncate(end)
            segment.size = end
            segment.rebuild_indexes()
            self.outcome.bytes_cut += size - end
            self._note(
                f"{size - end} bytes cut from the end of {segment.path}, "
                f"from offset {offset} on: they are no whole batch"
            )
        return offset

    def _adopt(self, segment: Segment, found: SegmentFiles, next_base: int | None) -> None:
        """Take over a segment that was flushed; it is closed if there is a next one."""
        offsets = found.index_sizes.get(file_names.OFFSET_INDEX)
        times = found.index_sizes.get(file_names.TIME_INDEX)
        needed = {file_names.OFFSET_INDEX, file_names.TIME_INDEX} if found.size else set()
        is_complete = needed <= found.index_sizes.keys()
        if found.index_sizes.get(file_names.TRANSACTION_INDEX, 0) % ENTRY.size:
            self._note(f"the transaction index of {segment.path} is damaged: rebuilt")
            self.doubtful.add(segment.base_offset)
        if not segment.adopt(found.size, offsets, times) or not is_complete:
            self._note(f"the indexes of {segment.path} are missing or damaged: rebuilt")
            with nullcontext() if next_base is None else suppress(DamagedFileError):
                segment.rebuild_indexes()
        if next_base is not None:
            self._settle_closed(segment, found, next_base)
        if file_names.DELAY_INDEX in found.index_sizes:
            segment.adopt_delays(found.index_sizes[file_names.DELAY_INDEX])
        is_void = segment.delays is not None and segment.delays.is_void
        if is_void or (found.size and self._is_to_check_delays):
            self._check_delays(segment)

    def _settle_closed(self, segment: Segment, found: SegmentFiles, next_base: int) -> None:
        """End a closed segment after its last whole batch, and report missing offsets."""
        end_offset = end_if_whole(self.disk.filesystem, segment, found)
        if end_offset is None:
            end_offset, lost = segment.drop_partial_batch()
            if lost:
                scan = CheckedScan(segment.file, segment.base_offset, segment.size, found.size)
                next(iter(scan), None)  # which refuses a format of long ago
                self._note(
                    f"{segment.path} ends at offset {end_offset}, as its last {lost} bytes are no "
                    f"batch ({scan.problem}): {_missing(end_offset, next_base)}",
                    logging.ERROR,
                )
                return
        self._check_gap(segment, end_offset, next_base)

    def _check_gap(self, segment: Segment, end_offset: int, next_base: int | None) -> None:
        """Report a gap of offsets between two segments, unless compaction may have emptied it."""
        first = max(end_offset, self.hints.log_start_offset)
        if next_base is not None and first < next_base and not self._may_be_compacted:
            self._note(
                f"{segment.path} ends at offset {end_offset}, and the next segment begins at "
                f"{next_base}: {_missing(first, next_base)}",
                logging.ERROR,
            )

    def _check_delays(self, segment: Segment) -> None:
        try:
            if segment.rebuild_delays():
                self._note(f"the delay index of {segment.path} was missing or damaged: rebuilt")
        except DamagedFileError as error:
            # Reads of the damaged batch fail, as long as the log is damaged.
            self._note(f"the delay index of {segment.path} cannot be rebuilt: {error.message}")

    def _recover(self, segment: Segment, found: SegmentFiles, next_base: int | None) -> bool:
        """Check a segment, which may not go beyond the next; True when the log must end in it."""
        if file_names.DELAY_INDEX in found.index_sizes:
            segment.adopt_delays(found.index_sizes[file_names.DELAY_INDEX])
        recovered = recover_segment(segment, found.size, self.hints.recovery_point, self.epochs)
        self.outcome.bytes_read += recovered.bytes_read
        self.outcome.bytes_cut += recovered.bytes_cut
        if recovered.has_markers or file_names.TRANSACTION_INDEX in found.index_sizes:
            self.doubtful.add(segment.base_offset)
        if recovered.bytes_cut:
            self._note(
                f"{recovered.bytes_cut} bytes cut from the end of {segment.path}, "
                f"from offset {recovered.next_offset} on: {recovered.problem}"
            )
        elif next_base is not None and recovered.next_offset > next_base:
            self._note(
                f"{segment.path} goes on to offset {recovered.next_offset}, beyond the beginning "
                f"of the next segment: cut off at {next_base} before, and cut off again"
            )
            segment.prepare_truncation(next_base)()
        else:
            self._check_gap(segment, recovered.next_offset, next_base)
        return recovered.bytes_cut > 0

    def _load_epochs(self) -> int:
        """Read the file; 0 when it says nothing, as one that a power failure has emptied."""
        try:
            self.epochs.load()
        except DamagedFileError as error:
            self._note(f"{self.epochs.path}: {error.message}; rebuilt from the log")
            self.epochs.clear()
        return len(self.epochs.entries())

    def _settle_epochs(self, contents: LogContents) -> None:
        offsets, segments = contents.offsets, contents.files.segments
        is_empty = offsets.log_end_offset == segments[0].base_offset
        if not self.loaded_epochs and not is_empty:
            self.epochs.clear()  # recovery has noted those past the recovery point, and no others
            for segment in segments:
                for _, header in segment.walk(0, segment.size):
                    self.epochs.note(header.partition_leader_epoch, header.base_offset)
        elif not (self.hints.was_clean or is_empty):
            self._check_epochs(contents)
        # An epoch that begins at the end has no record yet, or no longer, and begins there all
        # the same; dropping it would cost each empty log two writes of the file at every start.
        self.epochs.truncate_from_end(offsets.log_end_offset + 1)
        self.epochs.truncate_from_start(offsets.log_start_offset)
        self.epochs.save_if_changed()

    def _check_epochs(self, contents: LogContents) -> None:
        before = self.epochs.entries()
        segments = contents.files.segments
        bounds = contents.offsets.log_start_offset, contents.offsets.log_end_offset
        contradicted = epoch_recovery.first_contradiction(
            self.epochs, segments, bounds, self.loaded_epochs
        )
        if contradicted is not None:
            epoch_recovery.mend(self.epochs, segments, contradicted, bounds[0])
            self._note(f"leader epochs were {before}, the log has {self.epochs.entries()}")

    def _settle_producers(self, contents: LogContents) -> None:
        segments, snapshots = contents.files.segments, contents.files.snapshots
        bounds = (contents.offsets.log_start_offset, contents.offsets.log_end_offset)
        doubtful = self.doubtful.intersection(segments.base_offsets)
        if doubtful:
            rebuild_aborted(segments, snapshots, doubtful, self.hints.recovery_point)
        rebuild(contents.producers, snapshots, segments, bounds)
        contents.producers.note_high_watermark(contents.offsets.high_watermark)
        snapshots.remove_strays(segments.base_offsets)

    def _identified(self) -> LogPlace:
        place = self.place
        try:
            topic_id = partition_metadata.read(self.disk.filesystem, self.path)
        except DamagedFileError as error:
            self._note(f"{error.message}; the topic id is taken from the metadata")
            topic_id = None
        topic_id = topic_id or place.topic_id
        return LogPlace(place.directory, place.topic, place.partition, topic_id, place.future_id)

    def _new_segment(self, base_offset: int) -> Segment:
        """An empty one. It begins when its file does, as it will for the next start."""
        segment = Segment(self.disk, self.path, base_offset, self.config, created_ms=0)
        segment.create()
        found = survey(self.disk.filesystem, self.path)
        segment.created_ms = found.segments[base_offset].modified_ms
        return segment

    def _remove(self, segments: list[Segment], files: PartitionFiles, why: str) -> None:
        for segment, following in zip_longest(segments, segments[1:]):
            size, base_offset = files.segments[segment.base_offset].size, segment.base_offset
            end = "on" if following is None else f"to {following.base_offset - 1}"
            self._note(
                f"{segment.path} with {size} bytes {why}: removed, from offset {base_offset} {end}"
            )
            self.outcome.bytes_removed += size
            for path in segment.mark_deleted():
                self.disk.filesystem.remove(path)

    def _note(self, line: str, level: int = logging.WARNING) -> None:
        name = file_names.partition_directory(self.place.topic, self.place.partition)
        self.outcome.notes.append(f"{name}: {line}")
        LOGGER.log(level, "%s: %s", name, line)


def _missing(first: int, following: int) -> str:
    return f"offsets {first} to {following - 1} are missing"
