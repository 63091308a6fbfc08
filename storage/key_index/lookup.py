"""Look for records in all segments of some partitions, in the order of their offsets."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

from storage.key_index.job import JobFailed, LookupDone
from storage.key_index.segment_search import SegmentSearch, Stretch
from storage.segment.aborted_index import AbortedIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from protocol.records.record import Record
    from storage.filesystem import FileSystem
    from storage.key_index.job import LookupJob, PartitionPlace
    from storage.key_index.segment_search import Found
    from storage.segment.aborted_index import AbortedTransaction

NOWHERE: Final = -1


class _StoppedError(Exception):
    """A limit is reached; the records found so far are the answer."""


class OutdatedError(Exception):
    """A segment has changed since the job was created."""


class Lookup:
    """One job."""

    def __init__(
        self, job: LookupJob, filesystem: FileSystem, elapsed_ms: Callable[[], float]
    ) -> None:
        """`elapsed_ms()` is the time since the job came."""
        self._job = job
        self._filesystem = filesystem
        self._elapsed_ms = elapsed_ms
        self._found: list[bytes] = []
        self._left = job.limits.value_bytes
        self._next = (NOWHERE, NOWHERE)
        self._segments = self._without_index = self._bytes_read = 0
        self._damaged: list[tuple[int, int]] = []

    def run(self) -> tuple[LookupDone | JobFailed, bytes]:
        """The report, and the records that follow it.

        Raises ApiError (DamagedFileError among them) where a log is not sound, and OSError.
        """
        try:
            for place in self._job.partitions:
                self._next = (place.partition, place.from_offset)
                self._search(place)
            self._next = (NOWHERE, NOWHERE)
        except _StoppedError:
            pass
        except (OutdatedError, FileNotFoundError) as error:
            return JobFailed(str(error), is_outdated=True), b""
        data = b"[" + b",\n".join(self._found) + b"]"
        done = LookupDone(
            len(self._found),
            len(data),
            *self._next,
            self._segments,
            self._without_index,
            self._bytes_read,
            tuple(self._damaged),
        )
        return done, data

    def _search(self, place: PartitionPlace) -> None:
        aborted = _Aborted(self._filesystem, place) if self._job.is_read_committed else None
        for segment in place.segments:
            is_closed = segment is not place.segments[-1]
            stretch = Stretch(place.directory, *segment, is_closed=is_closed)
            self._next = (place.partition, max(place.from_offset, segment.base_offset))
            search = SegmentSearch(self._filesystem, stretch, self._note_read)
            if not search.is_current():
                raise OutdatedError(f"{search.path} has changed")
            self._segments += 1
            for found in search.run(self._job.query, (place.from_offset, place.to_offset)):
                self._next = (place.partition, found.record.offset)
                if aborted is None or not aborted.holds(found):
                    self._take(place.partition, found.record)
                self._next = (place.partition, found.record.offset + 1)
            self._without_index += not search.has_index
            if search.damage is not None:
                self._damaged.append((place.partition, segment.base_offset))

    def _note_read(self, count: int, next_offset: int) -> None:
        """Note that all records before an offset are searched, and that `count` bytes follow."""
        self._bytes_read += count
        self._next = (self._next[0], max(self._next[1], next_offset))
        if self._elapsed_ms() > self._job.limits.milliseconds:
            raise _StoppedError

    def _take(self, partition: int, record: Record) -> None:
        size = len(record.key or b"") + len(record.value or b"")
        size += sum(len(name) + len(value or b"") for name, value in record.headers)
        is_full = len(self._found) == self._job.limits.records
        if is_full or (self._found and size > self._left):
            raise _StoppedError
        self._left -= size
        self._found.append(_encode(partition, record))


class _Aborted:
    """The aborted transactions of a partition, read when a record of a transaction is found."""

    def __init__(self, filesystem: FileSystem, place: PartitionPlace) -> None:
        self._filesystem = filesystem
        self._place = place
        self._by_producer: dict[int, list[AbortedTransaction]] | None = None

    def holds(self, found: Found) -> bool:
        """Return whether a record belongs to one of these transactions."""
        if not found.batch.is_transactional:
            return False
        if self._by_producer is None:
            self._by_producer = self._read()
        return any(
            one.first_offset <= found.record.offset <= one.last_offset
            for one in self._by_producer.get(found.batch.producer_id, ())
        )

    def _read(self) -> dict[int, list[AbortedTransaction]]:
        by_producer: dict[int, list[AbortedTransaction]] = {}
        for segment in self._place.segments:  # the marker may stand in a later one
            index = AbortedIndex(self._filesystem, self._place.directory, segment.base_offset)
            for one in index.entries():
                by_producer.setdefault(one.producer_id, []).append(one)
        return by_producer


def _encode(partition: int, record: Record) -> bytes:
    return as_json(shown_record(partition, record))


def shown_record(partition: int, record: Record) -> dict[str, object]:
    """A record as JSON: text as it is, anything else as an object with `base64`."""
    return {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _shown(record.key),
        "value": _shown(record.value),
        "headers": [[name, _shown(value)] for name, value in record.headers],
    }


def as_json(fields: Mapping[str, object]) -> bytes:
    """One line, without its end."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def _shown(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
