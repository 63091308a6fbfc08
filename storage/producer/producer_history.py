"""The batches of a producer that a snapshot leaves out: of the last five, it has one.

A client with five requests under way sends all of them again when a broker ends before it has
answered. What of them was appended must be known then: otherwise the first is out of order, which
librdkafka takes for a fatal error, and after which the Java client appends the others once more,
under a new epoch. So it is with Apache Kafka, whose file format has no place for more than the last
batch. The others stand in the log, right before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.records.batch import SEQUENCE_SPACE
from storage.producer.producer import NONE, REMEMBERED_BATCHES, ProducedBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.records.batch import BatchHeader
    from storage.log.segments import Segments
    from storage.producer.producer import Producer

FIRST_STRETCH_BYTES: Final = 16 * 1024
MOST_BYTES: Final = 32 * 1024 * 1024
MOST_HEADERS: Final = 2000
"""What it may cost, once for a producer after a start: milliseconds, as a rule one read."""


def recall(producer: Producer, segments: Segments, log_start_offset: int) -> bool:
    """Add the batches before those that are remembered; returns whether there are more now.

    Walks the log backwards, headers only. Once is enough, until a snapshot is taken up again.
    """
    if not producer.is_from_snapshot:
        return False
    before = len(producer.batches)
    _recall(producer, segments, log_start_offset)
    producer.is_from_snapshot = False
    return len(producer.batches) > before


def _recall(producer: Producer, segments: Segments, log_start_offset: int) -> None:
    count = 0
    for headers in _stretches_before(segments, log_start_offset, producer):
        for header in reversed(headers):
            if header.base_offset < log_start_offset or not _goes_on(producer, header):
                return
        count += len(headers)
        if count > MOST_HEADERS:
            return


def _stretches_before(
    segments: Segments, log_start_offset: int, producer: Producer
) -> Iterator[list[BatchHeader]]:
    """Headers in the order of the log, the newest stretch first; each is longer than the last."""
    offset = producer.batches[0].base_offset
    stretch = FIRST_STRETCH_BYTES
    left = MOST_BYTES
    for index in range(segments.floor(offset - 1), segments.floor(log_start_offset) - 1, -1):
        segment = segments[index]
        place = segment.locate(offset)
        position = segment.size if place is None else place.position
        while position > 0 and left > 0:
            end = position
            position, headers = segment.headers_before(end, stretch)
            yield headers
            left -= end - position
            stretch *= 2


def _goes_on(producer: Producer, header: BatchHeader) -> bool:
    """Put a batch before those remembered if it belongs there; returns whether more may."""
    if header.producer_id != producer.producer_id or header.ends_transaction:
        return True
    oldest = producer.batches[0]
    is_next = (header.last_sequence + 1) % SEQUENCE_SPACE == oldest.base_sequence
    if header.producer_epoch != producer.epoch or header.base_sequence == NONE or not is_next:
        return False
    remembered = ProducedBatch(
        header.base_sequence,
        header.last_sequence,
        header.last_offset,
        header.last_offset_delta,
        header.max_timestamp,
    )
    producer.batches.insert(0, remembered)
    return len(producer.batches) < REMEMBERED_BATCHES
