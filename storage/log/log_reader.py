"""The state of one replica of one partition, and everything that reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from protocol.errors import ApiError, ErrorCode
from protocol.records.compression import Codec
from protocol.records.validation import ProduceRules
from storage.log.segments import WHOLE_LOG
from storage.segment import file_names
from storage.segment.slices import Slice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from config.topic import TopicConfig
    from storage.directory.log_directory import LogDirectory
    from storage.log.leader_epochs import LeaderEpochs
    from storage.log.segments import Segments
    from storage.producer.producer_state import ProducerState
    from storage.producer.snapshot_files import Snapshots
    from storage.segment.aborted_index import AbortedTransaction
    from storage.segment.timestamp_offset import TimestampOffset

DAY_MS = 86_400_000
NEVER_CLEANED: Final = -1


TARGET_CODECS: Final[dict[str, Codec | None]] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""By value of `compression.type`."""


def _compression_level(config: TopicConfig) -> int | None:
    match config.compression_type:
        case "gzip":
            return config.compression_gzip_level if config.compression_gzip_level > 0 else None
        case "lz4":
            return config.compression_lz4_level
        case "zstd":
            return config.compression_zstd_level
    return None


def _call_at_once(work: Callable[[], None]) -> None:
    work()


def _draw_zero(_limit: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What all logs of a broker share besides their topics' configuration."""

    producer_id_expiration_ms: int = DAY_MS
    run_later: Callable[[Callable[[], None]], None] = _call_at_once
    """Runs work that waits for the disk; on another thread if the broker likes. The work takes no
    argument, returns nothing and raises LogDirectoryError at most."""
    verifies_transactions: bool = False
    """The first batch of a transaction needs a guard (`storage.producer.verification_guards`)."""
    draw_below: Callable[[int], int] = _draw_zero
    """Draws a number from [0, limit), for the jitter of rolls by time."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Which partition it is and where its files are."""

    directory: LogDirectory
    topic: str
    partition: int
    topic_id: UUID | None = None

    @property
    def path(self) -> str:
        """Directory of the partition."""
        name = file_names.partition_directory(self.topic, self.partition)
        return f"{self.directory.path}/{name}"


@dataclass(slots=True)
class LogContents:
    """What was found on the disk, or made anew."""

    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerState
    snapshots: Snapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    high_watermark: int = field(default=0)
    cleaned_offset: int = NEVER_CLEANED


class LogReading:
    """Offsets, look-ups and reads. `log.Log` adds what writes."""

    __slots__ = (
        "_config",
        "_last_flush_ms",
        "_roll_jitter_ms",
        "_roll_ms",
        "cleaned_offset",
        "directory",
        "epochs",
        "high_watermark",
        "is_being_cleaned",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "path",
        "produce_rules",
        "producers",
        "recovery_point",
        "segments",
        "settings",
        "snapshots",
        "topic",
        "topic_id",
        "truncations",
    )

    def __init__(
        self, place: LogPlace, config: TopicConfig, settings: LogSettings, contents: LogContents
    ) -> None:
        self.directory = place.directory
        self.path = place.path
        self.topic = place.topic
        self.partition = place.partition
        self.topic_id = place.topic_id
        self.config = config
        self.settings = settings
        self.segments = contents.segments
        self.epochs = contents.epochs
        self.producers = contents.producers
        self.producers.guards.is_required = settings.verifies_transactions
        self.snapshots = contents.snapshots
        self.log_start_offset = contents.log_start_offset
        self.log_end_offset = contents.log_end_offset
        self.recovery_point = contents.recovery_point
        """Everything before it is on the disk for good."""
        self.high_watermark = contents.high_watermark
        self._last_flush_ms = 0
        self._roll_jitter_ms = 0
        self.cleaned_offset = contents.cleaned_offset
        """Up to here compaction has seen to it that keys are unique; -1: it has never been here."""
        self.is_being_cleaned = False
        """Compaction is at work; retention waits for that, lest it take segments from under it."""
        self.truncations = 0
        """What began before the last one, a flush or a cleaning, says nothing about the log now."""
        self.draw_roll_jitter()

    def __repr__(self) -> str:
        return f"<Log {self.name} [{self.log_start_offset}, {self.log_end_offset})>"

    @property
    def config(self) -> TopicConfig:
        """Of the topic. May be replaced; what a segment was created with stays as it was."""
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config
        is_compacted = "compact" in config.cleanup_policy
        # Compaction, which may be due by then, leaves the active segment alone.
        lag_ms = config.max_compaction_lag_ms if is_compacted else config.segment_ms
        self._roll_ms = min(config.segment_ms, lag_ms)
        self.produce_rules = ProduceRules(
            max_message_bytes=config.max_message_bytes,
            is_compacted=is_compacted,
            is_log_append_time=config.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            target_codec=TARGET_CODECS[config.compression_type],
            compression_level=_compression_level(config),
            is_hurried=True,
        )

    @property
    def name(self) -> str:
        """Topic and partition, as the directory is named."""
        return file_names.partition_directory(self.topic, self.partition)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all record batches."""
        return self.segments.size_in_bytes

    @property
    def latest_epoch(self) -> int:
        """Leader epoch of the newest records; -1 when there are none."""
        return self.epochs.latest

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed consumers must stop; never past the high watermark."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    def read(
        self, offset: int, max_bytes: int, upper_offset: int, *, minimum_one_batch: bool = True
    ) -> Slice:
        """Region of a file with the batches from `offset` on and before `upper_offset`.

        It begins with the whole batch in which `offset` lies, and ends at `max_bytes`, which may be
        within a batch. If that is less than the first batch the region is that batch, or, without
        `minimum_one_batch`, empty. Raises ApiError OFFSET_OUT_OF_RANGE outside
        [log start, log end]; at the log end, and at or past `upper_offset`, the slice is empty.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise self.out_of_range(offset)
        if offset >= upper_offset or offset == self.log_end_offset:
            return Slice(None, 0, 0, offset)
        with self.directory:
            bound = upper_offset if upper_offset < self.log_end_offset else WHOLE_LOG
            return self.segments.read(offset, max_bytes, bound, at_least_one=minimum_one_batch)

    def read_batches(self, from_offset: int, to_offset: int) -> Iterator[memoryview]:
        """Whole batches that hold offsets of [from, to), for coordinators that replay them."""
        if from_offset >= to_offset:
            return
        with self.directory:
            yield from self.segments.batches(from_offset, min(to_offset, self.log_end_offset))

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """First record that is not earlier than `timestamp_ms`; decompresses one batch."""
        with self.directory:
            return self.segments.find_timestamp(timestamp_ms, self.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """First record with the greatest timestamp."""
        with self.directory:
            return self.segments.find_max_timestamp(self.log_start_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Greatest known epoch up to `epoch` and where it ends; (-1, -1) when unknown (KIP-101)."""
        return self.epochs.end_offset(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """Leader epoch of the record at `offset`; -1 when it lies before all known epochs."""
        return self.epochs.epoch_at(offset)

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that overlap [from, to), by first offset."""
        with self.directory:
            found = self.segments.aborted_transactions(from_offset, to_offset)
        return sorted(found, key=attrgetter("first_offset"))

    def aborted_in(self, piece: Slice, from_offset: int) -> list[AbortedTransaction]:
        """What a read_committed consumer must skip in `piece`, which it asked for from an offset.

        Nearly free for a log in which nothing was aborted lately.
        """
        with self.directory:
            if not self.segments.has_aborted_after(from_offset):
                return []
            end = self.segments.end_of(piece)
        return self.aborted_transactions(from_offset, end)

    def out_of_range(self, offset: int) -> ApiError:
        """Return what to raise for an offset that the log does not hold."""
        return ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {self.name} is outside "
            f"[{self.log_start_offset}, {self.log_end_offset}]",
        )

    def draw_roll_jitter(self) -> None:
        """Draw anew how much earlier than `segment.ms` the active segment rolls."""
        limit = min(self._config.segment_jitter_ms, self._roll_ms)
        self._roll_jitter_ms = self.settings.draw_below(limit) if limit > 0 else 0
