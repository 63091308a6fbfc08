"""Files of a log: segments, leader epochs and producer snapshots, in one place."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from storage.segment import file_names
from storage.segment.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.topic import TopicConfig
    from protocol.records.batch import BatchHeader
    from storage.log.leader_epochs import LeaderEpochs
    from storage.log.log_settings import LogPlace
    from storage.log.segments import Segments
    from storage.producer.snapshot_files import Snapshots
    from storage.segment.aborted_index import AbortedTransaction


class LogFiles:
    """The files by kind, and what concerns several kinds of them."""

    __slots__ = ("epochs", "place", "segments", "snapshots")

    def __init__(
        self, place: LogPlace, segments: Segments, epochs: LeaderEpochs, snapshots: Snapshots
    ) -> None:
        self.place = place
        self.segments = segments
        self.epochs = epochs
        self.snapshots = snapshots

    def new_segment(self, base_offset: int, config: TopicConfig, now_ms: int) -> Segment:
        """Make a segment, which is not one of `segments` yet."""
        place = self.place
        segment = Segment(place.directory.disk, place.path, base_offset, config, now_ms)
        segment.create()
        return segment

    def new_segment_instead_of(
        self, old: Sequence[Segment], base_offset: int, config: TopicConfig, now_ms: int
    ) -> Segment:
        """Make a segment, which may have the name of one of `old`, whose files are removed."""
        filesystem = self.place.directory.disk.filesystem
        aside = [path for segment in old for path in segment.mark_deleted()]
        try:
            new = self.new_segment(base_offset, config, now_ms)
        except OSError:
            for path in aside:
                filesystem.rename(path, path.removesuffix(file_names.DELETED))
            raise
        for path in aside:
            filesystem.remove(path)
        return new

    def discard(self, segments: Sequence[Segment]) -> None:
        """Remove the files of `segments` now."""
        for segment in segments:
            for path in segment.mark_deleted():
                self.place.directory.disk.filesystem.remove(path)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`."""
        with self.place.directory:
            self.epochs.assign(epoch, start_offset)

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        """Note a transaction whose marker stands in the active segment."""
        with self.place.directory:
            self.segments.active.aborted_index.append(aborted)

    def note_delay(self, header: BatchHeader, position: int) -> None:
        """Note a batch with the delay bit that was written to the active segment."""
        with self.place.directory:
            self.segments.active.note_delay(header, position)

    def write_pending(self) -> None:
        """Write entries kept in memory to be written together, or for lack of a descriptor."""
        with self.place.directory:
            self.segments.active.write_index_entries()
            self.epochs.save_if_changed()

    def sync(self, segments: Sequence[Segment]) -> None:
        """Have `segments`, and what belongs to them, on the disk; safe on any thread.

        Blocks the calling thread until they are there; raises LogDirectoryError.
        """
        with self.place.directory:
            for segment in segments:
                segment.sync()
            for offset in self.snapshots.offsets[-len(segments) - 1 :]:
                self.snapshots.sync(offset)
            self.epochs.sync()

    def sync_names(self) -> None:
        """Have the names of the files on the disk; blocks and raises as `sync` does."""
        place = self.place
        with place.directory, suppress(FileNotFoundError):  # the log was deleted meanwhile
            place.directory.disk.filesystem.sync_directory(place.path)

    def release(self) -> None:
        """Close all files and write nothing; they are opened again when needed."""
        for segment in self.segments:
            segment.forget()
