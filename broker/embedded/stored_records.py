"""Records as they stand in a log, without a consumer in between."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from broker.embedded.errors import EmbeddedBrokerError
from protocol.records.batch import HEADER_BYTES, parse_header
from protocol.records.record import iterate_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from broker.partitions.partition import Partition
    from protocol.records.record import Header

PIECE_BYTES = 512 * 1024
"""Read from a log in one turn of the event loop."""


@dataclasses.dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record of a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since the epoch."""
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class LogPiece(NamedTuple):
    """Whole batches of one partition, and which transactions in it were aborted."""

    topic: str
    partition: int
    batches: bytes
    aborted: tuple[tuple[int, int, int], ...]
    """Producer id, first and last offset of each."""


def read_piece(partition: Partition, offset: int, *, is_committed_only: bool) -> LogPiece | None:
    """Log content from `offset` on; None at the end visible to consumers."""
    log = partition.log
    end = log.last_stable_offset if is_committed_only else log.high_watermark
    if offset >= end:
        return None
    data = log.read(offset, PIECE_BYTES, end).tobytes()
    size = _whole(data)
    if not size:
        return None
    last = next_offset(data[:size])
    aborted = log.aborted_transactions(offset, last) if is_committed_only else []
    return LogPiece(
        partition.topic,
        partition.index,
        data[:size],
        tuple((one.producer_id, one.first_offset, one.last_offset) for one in aborted),
    )


def next_offset(batches: bytes) -> int:
    """The offset behind whole batches."""
    return max(parse_header(batch).last_offset for batch in _each(batches)) + 1


def stored_records(pieces: Iterable[LogPiece]) -> list[StoredRecord]:
    """The records that producers have sent, by partition and offset."""
    return [record for piece in pieces for record in _records(piece)]


def partitions_of(topics: Mapping[str, int], topic: str, partition: int | None) -> Sequence[int]:
    """The partitions to be read: the one, or all of a topic. Raises EmbeddedBrokerError."""
    count = topics.get(topic)
    if count is None:
        raise EmbeddedBrokerError(f"there is no topic {topic}")
    if partition is None:
        return range(count)
    if partition not in range(count):
        last = f"the last partition is {topic}-{count - 1}"
        raise EmbeddedBrokerError(f"there is no {topic}-{partition}: {last}")
    return [partition]


def _records(piece: LogPiece) -> Iterator[StoredRecord]:
    for batch in _each(piece.batches):
        header = parse_header(batch)
        if header.is_control or _is_aborted(piece, header.producer_id, header.base_offset):
            continue
        for one in iterate_records(batch):
            yield StoredRecord(piece.topic, piece.partition, *one)


def _is_aborted(piece: LogPiece, producer_id: int, offset: int) -> bool:
    return any(
        producer_id == aborted and first <= offset <= last for aborted, first, last in piece.aborted
    )


def _whole(data: bytes) -> int:
    """Number of bytes of `data` that are whole batches."""
    position = 0
    while position + HEADER_BYTES <= len(data):
        size = parse_header(memoryview(data)[position:]).size_in_bytes
        if position + size > len(data):
            break
        position += size
    return position


def _each(batches: bytes) -> Iterator[memoryview]:
    position = 0
    while position < len(batches):
        size = parse_header(memoryview(batches)[position:]).size_in_bytes
        yield memoryview(batches)[position : position + size]
        position += size
