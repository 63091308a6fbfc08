"""Converts records of a shard to batches of its internal topic, and back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from protocol.errors import ApiError
from protocol.records.batch import parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.record import iterate_records
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coordinator.effects import ProducerIdentity
    from protocol.wire import Buffer

logger = logging.getLogger(__name__)

RecordT = TypeVar("RecordT")

UNCHECKED_SEQUENCE = 0
"""As Apache Kafka writes it; sequence numbers of coordinators' batches are not checked."""


class RecordFormat(Protocol[RecordT]):
    """The record format of one kind of shard: a module with these functions."""

    def encode_key(self, record: RecordT, /) -> bytes:
        """The record's key."""
        ...

    def encode_value(self, record: RecordT, /) -> bytes | None:
        """The record's value; None for a tombstone."""
        ...

    def decode(self, key: bytes, value: bytes | None, /) -> RecordT | None:
        """The inverse of both; None for a kind of record that does not concern the shard.

        Raises DecodeError for a damaged record.
        """
        ...

    def step_of(self, record: RecordT, /) -> str:
        """Step that is done once the record is in the log: see `broker.runtime.failpoints`."""
        ...


def to_batch(
    changes: Sequence[RecordT],
    record_format: RecordFormat[RecordT],
    now_ms: int,
    producer: ProducerIdentity | None = None,
) -> bytearray:
    """One uncompressed batch, ready to be appended; with a producer, part of its transaction."""
    encode_key, encode_value = record_format.encode_key, record_format.encode_value
    new = [NewRecord(now_ms, encode_key(change), encode_value(change)) for change in changes]
    if producer is None:
        return build_batch(new)
    return build_batch(
        new,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=UNCHECKED_SEQUENCE,
        is_transactional=True,
    )


def from_batch(
    batch: Buffer, record_format: RecordFormat[RecordT], name: str
) -> Iterator[tuple[int, RecordT]]:
    """The records of a data batch that concern the shard, each with its offset.

    A damaged record is skipped with a warning that names it, so that the others load. Records of
    protocols that this broker does not support are skipped without one.
    """
    try:
        for record in iterate_records(batch):
            if record.key is None:
                continue
            try:
                change = record_format.decode(record.key, record.value)
            except DecodeError as error:
                logger.warning("%s: record at offset %d skipped: %s", name, record.offset, error)
                continue
            if change is not None:
                yield record.offset, change
    except ApiError as error:
        offset = parse_header(batch).base_offset
        logger.warning("%s: rest of the batch at offset %d skipped: %s", name, offset, error)
