"""Jobs and reports of the key index processes, as values and as lines.

Lines of JSON go between the broker and the process: a job, then its report. The report on a look-up
is followed by the records found, as many bytes as it states.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from storage.key_index.query import Query


@dataclass(frozen=True, slots=True)
class BuildJob:
    """A closed segment to be indexed, beside its log and under a name that means nothing yet."""

    directory: str
    base_offset: int
    size: int
    """Bytes of its `.log` file."""
    bytes_per_second: float


class SegmentPlace(NamedTuple):
    """A segment to be searched."""

    base_offset: int
    size: int
    """Bytes of its `.log` file that may be read."""


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """A partition to be searched."""

    partition: int
    directory: str
    segments: tuple[SegmentPlace, ...]
    """From the one on in which `from_offset` lies to the active one, which is the last."""
    from_offset: int
    to_offset: int
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class LookupLimits:
    """Limits at which a look-up stops and returns the records found so far."""

    records: int
    value_bytes: int
    """Of keys, values and headers of all records together; the first record comes in any case."""
    milliseconds: int


@dataclass(frozen=True, slots=True)
class LookupJob:
    """Look for records in some partitions of a topic."""

    query: Query
    partitions: tuple[PartitionPlace, ...]
    limits: LookupLimits
    is_read_committed: bool
    """Records of aborted transactions are left out."""


Job = BuildJob | LookupJob


def encode_job(job: Job) -> bytes:
    """One line."""
    fields = asdict(job)
    if isinstance(job, LookupJob):
        query = fields["query"]
        for name in ("key", "message_id"):
            query[name] = _text(query[name])
    kind = "look up" if isinstance(job, LookupJob) else "build"
    return json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode() + b"\n"


def decode_job(line: bytes) -> Job:
    """The job in a line."""
    fields = json.loads(line)
    if fields.pop("kind") == "build":
        return BuildJob(**fields)
    query = fields["query"]
    for name in ("key", "message_id"):
        query[name] = _bytes(query[name])
    places = [
        {**place, "segments": tuple(SegmentPlace(*one) for one in place["segments"])}
        for place in fields["partitions"]
    ]
    return LookupJob(
        Query(**query),
        tuple(PartitionPlace(**place) for place in places),
        LookupLimits(**fields["limits"]),
        fields["is_read_committed"],
    )


@dataclass(frozen=True, slots=True)
class IndexBuilt:
    """Report on an index that is written."""

    size: int
    entries: int


@dataclass(frozen=True, slots=True)
class LookupDone:
    """Result of a look-up, up to the point where it stopped."""

    records: int
    length: int
    """Bytes of the records, which follow: a JSON array."""
    next_partition: int
    next_offset: int
    """Offset to continue from; both -1 if everything was searched."""
    segments: int
    """Segments searched, with an index or without."""
    segments_without_index: int
    bytes_read: int
    damaged: tuple[tuple[int, int], ...]
    """Partition and base offset of segments whose index could not be used."""


@dataclass(frozen=True, slots=True)
class JobFailed:
    """Report on a failed job."""

    message: str
    errno: int = 0
    """Error number of the operating system, if the failure was an OSError."""
    is_outdated: bool = False
    """True if the log has changed since the job was created."""


Report = IndexBuilt | LookupDone | JobFailed
_KINDS: dict[str, type[Any]] = {"built": IndexBuilt, "done": LookupDone, "failed": JobFailed}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_report(report: Report) -> bytes:
    """One line."""
    fields = {"kind": _NAMES[type(report)], **asdict(report)}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode_report(line: bytes) -> Report:
    """The report in a line; ValueError, KeyError or TypeError when there is none."""
    fields = json.loads(line)
    kind = _KINDS[fields.pop("kind")]
    if kind is LookupDone:
        fields["damaged"] = tuple((partition, offset) for partition, offset in fields["damaged"])
    report: Report = kind(**fields)
    return report


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
