"""One replica of one partition: the parts of a log, and the operations that concern several.

    log_offsets     log start and end, high watermark, recovery point, cleaned offset
    log_files       segments, leader epochs and producer snapshots, on the disk
    producers       last batches of each producer (`storage.producer`)
    log_rules       the topic's configuration, applied to this log
    leader_appends, follower_appends      appends (`storage.append`)
    log_reader      regions of its files, look-ups by time, aborted transactions
    rolls, flushes, truncation, retention

A part knows those it needs, and none knows the log. Callers hold the log; for rarer needs they call
the part itself.

Every method may raise LogDirectoryError; the directory is offline then, and so is the log. An
operation of several steps opens all files that it needs before the first of them, so that a lack of
descriptors (ExhaustedError) leaves the log as it was.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from storage.append.append_source import FROM_CLIENT
from storage.append.follower_appends import FollowerAppends
from storage.append.leader_appends import LeaderAppends
from storage.delays.delaying_appends import DelayingAppends
from storage.delays.log_delays import LogDelays
from storage.log.flushes import Flushes
from storage.log.log_contents import LogContents
from storage.log.log_reader import LogReader
from storage.log.log_rules import LogRules, has_delays
from storage.log.retention import Retention
from storage.log.rolls import Rolls
from storage.log.truncation import Truncation
from storage.segment.time_search import finished

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from config.topic import TopicConfig
    from protocol.records.validation import ProduceRules
    from protocol.wire import Buffer
    from storage.append.append_info import AppendInfo
    from storage.append.append_source import AppendSource
    from storage.append.follower_appends import PendingAppend
    from storage.directory.log_directory import LogDirectory
    from storage.log.log_settings import LogSettings
    from storage.segment.aborted_index import AbortedTransaction
    from storage.segment.timestamp_offset import TimestampOffset


def _of(path: str) -> Any:  # noqa: ANN401 - the field's own type
    """A field of a part. Its getter is in C: reading it costs no Python call."""
    return property(attrgetter(path))


class Log:
    """One caller at a time, but for what says that it is safe from another thread."""

    __slots__ = (
        "epochs",
        "files",
        "flushes",
        "follower_appends",
        "is_being_cleaned",
        "leader_appends",
        "offsets",
        "place",
        "producers",
        "read",
        "reader",
        "rolls",
        "rules",
        "segments",
    )

    directory: LogDirectory = _of("place.directory")
    path: str = _of("place.path")
    topic: str = _of("place.topic")
    partition: int = _of("place.partition")
    topic_id: UUID | None = _of("place.topic_id")
    name: str = _of("place.name")

    log_start_offset: int = _of("offsets.log_start_offset")
    log_end_offset: int = _of("offsets.log_end_offset")
    high_watermark: int = _of("offsets.high_watermark")
    recovery_point: int = _of("offsets.recovery_point")
    cleaned_offset: int = _of("offsets.cleaned_offset")

    produce_rules: ProduceRules = _of("rules.produce_rules")
    latest_epoch: int = _of("epochs.latest")
    """Leader epoch of the newest records; -1 when there are none."""
    size_in_bytes: int = _of("segments.size_in_bytes")
    """Of all record batches."""

    def __init__(self, contents: LogContents, config: TopicConfig, settings: LogSettings) -> None:
        self.files, self.offsets, self.producers = contents
        self.place = self.files.place
        self.segments = self.files.segments
        self.epochs = self.files.epochs
        self.is_being_cleaned = False
        """Compaction is at work; retention waits for that, lest it take segments from under it."""
        self.rules = LogRules(config)
        self.flushes = Flushes(self.files, self.offsets, settings.run_later)
        self.rolls = Rolls(contents, self.rules, self.flushes, settings.draw_below)
        self.leader_appends = LeaderAppends(contents, self.rules, self.rolls)
        self.follower_appends = FollowerAppends(contents, self.rules, self.rolls)
        if has_delays(config):
            self.prepare_delays()
        self.reader = LogReader(contents)
        self.read = self.reader.read
        """No method of its own, for a call less."""
        self.producers.guards.is_required = settings.verifies_transactions

    def __repr__(self) -> str:
        return f"<Log {self.name} [{self.log_start_offset}, {self.log_end_offset})>"

    @property
    def config(self) -> TopicConfig:
        """Configuration of the topic. May be replaced; existing segments keep theirs."""
        return self.rules.config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self.rules.change(config)
        if has_delays(config):
            self.prepare_delays()

    @property
    def last_stable_offset(self) -> int:
        """Last stable offset: the limit of read_committed consumers, at most the high watermark."""
        offsets = self.offsets
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return offsets.high_watermark
        stable = min(max(unstable, offsets.log_start_offset), offsets.high_watermark)
        assert offsets.log_start_offset <= stable, (stable, offsets)
        return stable

    @property
    def delays(self) -> LogDelays:
        """The part of it that concerns delays."""
        return LogDelays(self._contents())

    def prepare_delays(self) -> bool:
        """Handle delays in appends, if records wait, have waited, or may; return whether so.

        Once enabled, it stays so. Call it when this broker begins to lead.
        """
        if type(self.leader_appends) is LeaderAppends and (
            has_delays(self.config) or self.delays.exist
        ):
            self.leader_appends = DelayingAppends(self._contents(), self.rules, self.rolls)
        return isinstance(self.leader_appends, DelayingAppends)

    # Appends

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        source: AppendSource = FROM_CLIENT,
    ) -> AppendInfo:
        """See `LeaderAppends.append`."""
        return self.leader_appends.append(records, leader_epoch, now_ms, source)

    def append_as_follower(self, records: Buffer, now_ms: int) -> AppendInfo | None:
        """See `FollowerAppends.append`."""
        return self.follower_appends.append(records, now_ms)

    def begins_within(self, records: Buffer) -> int | None:
        """See `FollowerAppends.begins_within`."""
        return self.follower_appends.begins_within(records)

    def begin_append_as_follower(self, records: Buffer, now_ms: int) -> PendingAppend | None:
        """See `FollowerAppends.begin`."""
        return self.follower_appends.begin(records, now_ms)

    def finish_append_as_follower(self, pending: PendingAppend) -> bool:
        """See `FollowerAppends.finish`."""
        return self.follower_appends.finish(pending)

    # Reads

    def read_batches(self, from_offset: int, to_offset: int) -> Iterator[memoryview]:
        """See `LogReader.read_batches`."""
        return self.reader.read_batches(from_offset, to_offset)

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """See `LogReader.aborted_transactions`."""
        return self.reader.aborted_transactions(from_offset, to_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """First record that is not earlier than `timestamp_ms`, searched for here and now."""
        return finished(self.reader.search_timestamp(timestamp_ms))

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """First record with the greatest timestamp, searched for here and now."""
        return finished(self.reader.search_max_timestamp())

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Greatest known epoch up to `epoch` and where it ends; (-1, -1) when unknown (KIP-101)."""
        return self.epochs.end_offset(epoch, self.offsets.log_end_offset)

    # Moves of its offsets

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`."""
        self.files.assign_epoch(epoch, start_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark to `offset`, at most to the LEO; return whether it moved."""
        offsets = self.offsets
        # Without a call if there is nothing to do: followers look with each answer.
        if offset <= offsets.high_watermark or not offsets.advance_high_watermark(offset):
            return False
        if self.producers.unreplicated:
            self.producers.note_high_watermark(offsets.high_watermark)
        return True

    def advance_log_start_offset(self, offset: int) -> bool:
        """Raise the log start offset, as DeleteRecords does; return whether it moved.

        Raises ApiError OFFSET_OUT_OF_RANGE beyond the high watermark. Segments that lie wholly
        before it go with the next `delete_expired`.
        """
        if not self.offsets.may_start_at(offset):
            return False
        with self.place.directory:
            self.offsets.start_at(offset)
            self.epochs.truncate_from_start(offset)
        return True

    def truncate_to(self, offset: int) -> bool:
        """See `Truncation.truncate_to`."""
        return Truncation(self._contents(), self.rules).truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """See `Truncation.start_over_at`."""
        Truncation(self._contents(), self.rules).start_over_at(offset)

    def delete_expired(self, now_ms: int) -> list[str]:
        """See `Retention.delete_expired`."""
        return Retention(self._contents(), self.rules, self.rolls).delete_expired(now_ms)

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """See `Rolls.roll`."""
        self.rolls.roll(now_ms, base_offset)

    def flush(self) -> None:
        """Have all that was appended on the disk, and move the recovery point.

        Blocks the calling thread until it is there; raises LogDirectoryError.
        """
        self.flushes.flush()

    # Its end

    def close(self) -> None:
        """Flush, cut the indexes to size and leave a snapshot: the next start has nothing to do."""
        self.finish()
        self.flush()
        self.release()

    def finish(self) -> None:
        """Write all that `close` writes, without waiting for the disk."""
        end_offset = self.offsets.log_end_offset
        with self.place.directory:
            self.segments.active.seal()
            self.epochs.save_if_changed()
            if end_offset > self.segments[0].base_offset:
                self.files.snapshots.write(end_offset, self.producers.snapshot())

    def release(self) -> None:
        """Close all files and write nothing; the log can still be used."""
        self.files.release()

    def give_up(self) -> LogDirectory:
        """Release the files of a deleted log; return the directory that it was in.

        Any later operation is refused with DeletedLogError: files are opened by their names, which
        may be those of another log by then, as when a topic is created again.
        """
        self.release()
        return self.place.leave()

    def _contents(self) -> LogContents:
        return LogContents(self.files, self.offsets, self.producers)
