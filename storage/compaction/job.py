"""Requests and reports of one cleaning, as values and as lines of JSON.

The lines go between the broker and the cleaner process: a job, then for each new segment the report
that it is written and the go-ahead, then the end.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from storage.segment.file_names import (
    DELAY_INDEX,
    KAFKA_SUFFIXES,
    TRANSACTION_INDEX,
    segment_file,
)

GO_ON = b"go on\n"
"""Go-ahead that the process waits for after each new segment, before any further report."""


class LastOfProducer(NamedTuple):
    """Newest state of an active producer in the log."""

    last_offset: int
    """Of its last data; -1 when only a marker is left."""
    epoch: int


class SourceSegment(NamedTuple):
    """A segment to be cleaned."""

    base_offset: int
    size: int
    offset_index_size: int
    time_index_size: int
    modified_ms: int
    """Modification time of its `.log` file; inherited by its replacement."""


@dataclass(frozen=True, slots=True)
class CleanerLimits:
    """Resources of one cleaner process."""

    memory_bytes: int
    """Of `log.cleaner.dedupe.buffer.size`, its share."""
    load_factor: float
    buffer_bytes: int
    """I/O buffer size, in bytes."""
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """Size limits of a new segment."""

    segment_bytes: int
    index_bytes: int
    index_interval_bytes: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """One log to clean."""

    directory: str
    segments: tuple[SourceSegment, ...]
    """All that lie before `end_offset`, in order."""
    later_segments: tuple[int, ...]
    """Base offsets of the others: the marker of a transaction may stand in one."""
    first_dirty_offset: int
    end_offset: int
    """The first that must not be cleaned; a segment begins there."""
    producers: dict[int, LastOfProducer]
    now_ms: int
    hash_seed: str
    """Random bytes, as hexadecimal digits: an unpredictable seed for the hashes of keys."""
    delete_retention_ms: int
    segment_limits: SegmentLimits
    limits: CleanerLimits

    def encode(self) -> bytes:
        """One line; takes milliseconds where there are thousands of producers."""
        fields = asdict(self)
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> CleaningJob:
        """The job in a line."""
        fields = json.loads(line)
        fields["segments"] = tuple(SourceSegment(*one) for one in fields["segments"])
        fields["later_segments"] = tuple(fields["later_segments"])
        fields["producers"] = {
            int(producer_id): LastOfProducer(*last)
            for producer_id, last in fields["producers"].items()
        }
        fields["segment_limits"] = SegmentLimits(**fields["segment_limits"])
        fields["limits"] = CleanerLimits(**fields["limits"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """A new segment, written and on the disk, under the names with `.cleaned`."""

    sources: tuple[int, ...]
    """Base offsets of the segments that it replaces; it has that of the first."""
    size: int
    offset_index_size: int
    time_index_size: int
    has_aborted: bool
    """True if there is a transaction index."""
    delay_index_size: int
    modified_ms: int

    def paths(self, directory: str) -> list[str]:
        """The files as they will be named, the `.log` file first."""
        return [
            segment_file(directory, self.sources[0], suffix)
            for suffix in (*KAFKA_SUFFIXES, DELAY_INDEX)
            if (self.has_aborted or suffix != TRANSACTION_INDEX)
            and (self.delay_index_size or suffix != DELAY_INDEX)
        ]


@dataclass(frozen=True, slots=True)
class CleaningDone:
    """All groups are written."""

    end_offset: int
    """End of the clean part of the log; lower than requested if there were too many keys."""
    bytes_read: int
    bytes_written: int
    keyless: int
    """Records that had no key and were dropped."""


NO_SEGMENT: Final = -1


@dataclass(frozen=True, slots=True)
class CleaningFailed:
    """Failure of a job; groups swapped in before are complete."""

    message: str
    errno: int = 0
    """Error number of the operating system, if the failure was an OSError."""
    damaged_delays: int = NO_SEGMENT
    """Base offset of the segment whose delay index has to be rebuilt, if that was the failure."""


Report = CleanedGroup | CleaningDone | CleaningFailed
_KINDS: dict[str, type[Any]] = {
    "group": CleanedGroup,
    "done": CleaningDone,
    "failed": CleaningFailed,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_report(report: Report) -> bytes:
    """One line."""
    fields = {"kind": _NAMES[type(report)], **asdict(report)}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode_report(line: bytes) -> Report:
    """The report in a line; ValueError when there is none."""
    fields = json.loads(line)
    kind = _KINDS[fields.pop("kind")]
    if kind is CleanedGroup:
        fields["sources"] = tuple(fields["sources"])
    report: Report = kind(**fields)
    return report
