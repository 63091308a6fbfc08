"""What one cleaning is asked to do and what it answers, as values and as lines of JSON.

The lines go between the broker and the process that cleans: a job, then for each new segment the
news that it is written and the word to go on, then the end.
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
"""What the process waits for after each new segment, before it tells of anything more."""


class LastOfProducer(NamedTuple):
    """Where the newest state of an active producer stands in the log."""

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
    """When its `.log` file was last changed; what replaces it says the same."""


@dataclass(frozen=True, slots=True)
class CleanerLimits:
    """What one cleaner process may use."""

    memory_bytes: int
    """Of `log.cleaner.dedupe.buffer.size`, its share."""
    load_factor: float
    buffer_bytes: int
    """What it reads and writes at a time."""
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """How large a new segment may be."""

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
    """Random bytes, as hexadecimal digits: keys are told apart by a hash that nobody can know."""
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
    """Whether there is a transaction index."""
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
    """Up to here the log is clean now; less than was asked for if there were too many keys."""
    bytes_read: int
    bytes_written: int
    keyless: int
    """Records that had no key and were dropped."""


NO_SEGMENT: Final = -1


@dataclass(frozen=True, slots=True)
class CleaningFailed:
    """The job came to an end before its time; what was swapped in before is whole."""

    message: str
    errno: int = 0
    """What the operating system said, if it was that."""
    damaged_delays: int = NO_SEGMENT
    """Base offset of the segment whose delay index is to be made anew, if it was that."""


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
