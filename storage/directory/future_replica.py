"""A replica on its way to another log directory: the copy, and how it takes the log's place.

The copy stands in a directory with the suffix `-future`, as in Apache Kafka (KIP-113). It fetches
the log's batches as a follower does, and is truncated where the log was, which leader epochs show
(KIP-101). When it has caught up:

    1  prepare         on the disk: all records, where they start, and a file `moved-here`
    2  take_place      orders-0  is renamed to  orders-0.<id>-delete      in the old directory
    3                  orders-0.<id>-future  is renamed to  orders-0      in the new one
    4                  the log goes on with the files of the copy
    5  settle          both names are on the disk; `moved-here` goes, and the old files may

Steps 2 to 4 run in one callback of the event loop, so nothing is appended in between. After a crash
the log is where it was before step 2, and a copy beside it is continued. A copy with `moved-here`
and no log elsewhere is the log (between 2 and 3). Should a loss of power have kept step 3 and not
step 2, there are two of the name, of which the one with `moved-here` is the log.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from config.key import LONG_MAX
from protocol.errors import ApiError, ErrorCode
from storage.errors import DeletedLogError, LogDirectoryError
from storage.log.segments import WHOLE_LOG
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.log.log import Log
    from storage.segment.slices import Slice

PIECE_BYTES: Final = 256 * 1024
"""Bytes copied at once: appending them blocks the event loop."""
NOWHERE: Final = -1


class FutureReplica:
    """A log and its copy; used on the event loop, except for functions documented for threads."""

    __slots__ = ("_source", "copy", "is_prepared", "log", "noted_start")

    def __init__(self, log: Log, copy: Log) -> None:
        self.log = log
        self.copy = copy
        self._source = log.directory
        self.is_prepared = False
        """True if `moved-here` is on the disk."""
        self.noted_start = NOWHERE
        """Log start offset in the checkpoint of the copy's directory."""

    @property
    def lag(self) -> int:
        """Number of offsets by which the copy is behind."""
        return max(0, self.log.log_end_offset - self.copy.log_end_offset)

    # Copying

    def align(self) -> None:
        """Truncate the copy to agree with the log.

        Raises ApiError if the log can no longer move.
        """
        log, copy = self.log, self.copy
        check_delays(log)
        start = log.log_start_offset
        common = self._common_end()
        if common < start:
            copy.truncate_fully_and_start_at(start)
        elif common < copy.log_end_offset:
            copy.truncate_to(common)
        copy.advance_high_watermark(log.high_watermark)
        if copy.log_start_offset < start <= copy.high_watermark:
            copy.advance_log_start_offset(start)

    def next_piece(self) -> Slice:
        """Next piece of the log to copy; empty if the copy has caught up. Call `align` first."""
        piece = self.log.read(
            self.copy.log_end_offset, PIECE_BYTES, WHOLE_LOG, minimum_one_batch=True
        )
        if piece.length and piece.first_offset < self.copy.log_end_offset:
            # Compaction has come between: the copy ends within a batch of the log.
            self.copy.truncate_to(piece.first_offset)
        return piece

    def append(self, records: bytes, now_ms: int) -> bool:
        """Add what `next_piece` found; returns whether there was a whole batch in it.

        Raises ApiError as `Log.append_as_follower` does.
        """
        return self.copy.append_as_follower(records, now_ms) is not None

    def _common_end(self) -> int:
        """Up to where both have the same records."""
        log, copy = self.log, self.copy
        end = min(log.log_end_offset, copy.log_end_offset)
        for epoch, start in reversed(copy.epochs.entries()):
            known, known_end = log.end_offset_for_epoch(epoch)
            if known == epoch:
                return min(end, known_end)
            end = min(end, start)
        return end

    # Taking the log's place

    def prepare(self) -> Callable[[], bool]:
        """Begin step 1; returns the rest of it, for a thread, which waits for the disk.

        The rest returns False if the copy was cancelled meanwhile. Both raise LogDirectoryError.
        """
        flush = self.copy.flushes.start()

        def on_thread() -> bool:
            with suppress(DeletedLogError):
                flush()
                if not self.is_prepared:
                    # The mark of an earlier move could be taken for this one's.
                    self._remove_mark(self.log)
                    self.is_prepared = self._leave_mark()
            return self.is_prepared

        return on_thread

    def is_flushed_enough(self) -> bool:
        """Return whether the copy's recovery point has reached the log's."""
        return self.copy.recovery_point >= self.log.recovery_point

    @property
    def is_start_noted(self) -> bool:
        """True if the log start is noted, so that a crash after the move revives no record."""
        return self.noted_start == self.log.log_start_offset

    def take_rest(self, now_ms: int) -> bool:
        """Take what little is missing, here and now; False if it is more than a piece."""
        self.align()
        rest = self.next_piece()
        if rest.length:
            self.append(rest.tobytes(), now_ms)
            self.align()
        return not self.lag and self.copy.log_start_offset == self.log.log_start_offset

    @property
    def is_acknowledged_from_disk(self) -> bool:
        """True if producers wait for the log's disk (`flush.messages`), and so for the copy's."""
        return self.log.config.flush_messages != LONG_MAX

    def flush_records(self) -> Callable[[], None]:
        """Return a function for a thread that waits until the copy's records are on its disk.

        Both raise LogDirectoryError. While the log's flushes are held, these are all the records
        that producers have been, or will be, acknowledged.
        """
        flush = self.copy.flushes.start_for_records(self.copy.recovery_point)

        def on_thread() -> None:
            with suppress(DeletedLogError):  # the copy was cancelled meanwhile
                flush()

        return on_thread

    def take_place(self) -> str:
        """Steps 2 to 4; returns the path of the old files. Raises LogDirectoryError.

        The log is where it was then, unless both directories fail.
        """
        log, copy = self.log, self.copy
        source, target = self._source, copy.directory
        assert self.is_prepared
        assert copy.log_end_offset == log.log_end_offset, (copy, log)
        filesystem = source.disk.filesystem
        old_path, new_path = log.path, f"{target.path}/{log.name}"
        unique = copy.place.future_id
        aside = f"{source.path}/{file_names.deleted_directory(log.topic, log.partition, unique)}"
        log.release()
        with source:
            filesystem.rename(old_path, aside)
        try:
            with target:
                filesystem.rename(copy.path, new_path)
        except LogDirectoryError:
            with source:
                filesystem.rename(aside, old_path)
            raise
        for segment in log.segments:
            segment.relocate(aside)  # some may be read on
        with suppress(LogDirectoryError):  # logged when it failed; the log itself is intact
            go_on_at(log, copy, new_path)
        return aside

    def settle(self) -> None:
        """Step 5, on a thread, after which the old files may go. Raises LogDirectoryError."""
        for directory in (self.copy.directory, self._source):
            with directory:
                directory.disk.filesystem.sync_directory(directory.path)
        with suppress(DeletedLogError):
            self._remove_mark(self.log)

    def _leave_mark(self) -> bool:
        copy = self.copy
        filesystem = copy.directory.disk.filesystem
        with copy.directory:
            try:
                filesystem.replace(f"{copy.path}/{file_names.MOVED}", b"", sync=True)
                filesystem.sync_directory(copy.path)
            except FileNotFoundError:
                return False
        return True

    @staticmethod
    def _remove_mark(log: Log) -> None:
        filesystem = log.directory.disk.filesystem
        with log.directory:
            path = f"{log.path}/{file_names.MOVED}"
            if filesystem.exists(path):
                filesystem.remove(path)
                filesystem.sync_directory(log.path)


def check_delays(log: Log) -> None:
    """Raises ApiError for a log in which records wait, or may: what delivers them stays here."""
    if log.prepare_delays():
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, f"{log.name} has delayed records: it cannot be moved"
        )


def is_marked(log: Log) -> bool:
    """Return whether a log, or a copy, is marked `moved-here`: it was about to replace another."""
    with log.directory:
        return log.directory.disk.filesystem.exists(f"{log.path}/{file_names.MOVED}")


def go_on_at(log: Log, copy: Log, path: str) -> None:
    """Have `log` go on with the files of `copy`, which are at `path` now.

    Raises LogDirectoryError if leader epochs cannot be written there; all else is done.
    """
    for segment in copy.segments:
        segment.relocate(path)
    log.segments.become(copy.segments)
    log.files.snapshots = copy.files.snapshots
    log.files.snapshots.relocate(path)
    log.place.change(copy.directory, path)
    log.offsets.move_to(copy.offsets)
    with log.directory:
        log.epochs.relocate(path)
