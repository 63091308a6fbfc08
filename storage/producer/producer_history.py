"""The batches of a producer that its state leaves out, and that stand in the log.

Of the last five, a snapshot has one.

A client with five requests under way sends all of them again when a broker ends before it has
answered. Those already appended must be known then: otherwise the first is out of order, a fatal
error to librdkafka, after which the Java client appends the others once more, under a new epoch.
Apache Kafka has that flaw, as its file format has room for the last batch only. The others are in
the log, right before it.

Five are enough while a client talks to one leader. When leadership moves, a client may learn of it
before the old leader has answered: its answers leave in order, and an earlier one may still wait
for a commit. The client sends its next batches to the new leader, five or more, and only then
repeats those that the old one had appended, and replicated, before it refused them::

    at the old leader    sequences 2, 3 appended ... replicated ... refused: NOT_LEADER_OR_FOLLOWER
    at the new leader                                4 5 6 7 8 appended      2?  3?

By then only the log shows that 2 and 3 are there. To Apache Kafka they are out of order, and the
Java client repeats them until `delivery.timeout.ms`, and reports stored records as failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.records.batch import SEQUENCE_SPACE
from storage.producer.producer import NONE, REMEMBERED_BATCHES, ProducedBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from protocol.records.batch import BatchHeader
    from storage.log.segments import Segments
    from storage.producer.producer import Producer

HALF: Final = SEQUENCE_SPACE // 2
FIRST_STRETCH_BYTES: Final = 16 * 1024
MOST_BYTES: Final = 32 * 1024 * 1024
MOST_HEADERS: Final = 2000
"""Headers read at most, once per producer after a start: milliseconds, as a rule one read."""
MOST_REPEAT_BYTES: Final = 4 * 1024 * 1024
MOST_REPEAT_HEADERS: Final = 500
"""Headers read at most for each batch that repeats an older one than remembered: a millisecond."""


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
    offset = producer.batches[0].base_offset
    for headers in _stretches_before(segments, log_start_offset, offset, MOST_BYTES):
        for header in reversed(headers):
            if header.base_offset < log_start_offset or not _goes_on(producer, header):
                return
        count += len(headers)
        if count > MOST_HEADERS:
            return


def find_repeated(
    producer: Producer, header: BatchHeader, segments: Segments, log_start_offset: int
) -> ProducedBatch | None:
    """Return the batch that `header` repeats, if it is older than those remembered, but not far.

    It must stand in the log: that later ones were appended does not prove it.
    """
    if header.producer_epoch != producer.epoch or not _is_before(header, producer.batches):
        return None
    count = 0
    offset = producer.batches[0].base_offset
    for headers in _stretches_before(segments, log_start_offset, offset, MOST_REPEAT_BYTES):
        for one in reversed(headers):
            if one.base_offset < log_start_offset:
                return None
            if one.producer_id != producer.producer_id or one.ends_transaction:
                continue
            if one.producer_epoch != producer.epoch:
                return None
            if (one.base_sequence, one.last_sequence) == (
                header.base_sequence,
                header.last_sequence,
            ):
                return _remembered(one)
        count += len(headers)
        if count > MOST_REPEAT_HEADERS:
            return None
    return None


def _is_before(header: BatchHeader, batches: Sequence[ProducedBatch]) -> bool:
    """Return whether its sequences precede `batches`, by less than half the sequence space."""
    if not batches:
        return False
    return 0 < (batches[0].base_sequence - header.last_sequence) % SEQUENCE_SPACE < HALF


def _stretches_before(
    segments: Segments, log_start_offset: int, offset: int, most_bytes: int
) -> Iterator[list[BatchHeader]]:
    """Headers in the order of the log, the newest stretch first; each is longer than the last."""
    stretch = FIRST_STRETCH_BYTES
    left = most_bytes
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
    producer.batches.insert(0, _remembered(header))
    return len(producer.batches) < REMEMBERED_BATCHES


def _remembered(header: BatchHeader) -> ProducedBatch:
    return ProducedBatch(
        header.base_sequence,
        header.last_sequence,
        header.last_offset,
        header.last_offset_delta,
        header.max_timestamp,
    )
