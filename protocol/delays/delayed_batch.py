"""Turn a produced batch into the batch to append, in a topic with delays.

`wrap` looks into the records of a validated batch. The batch stays unchanged if none of them has a
delay; otherwise all of it goes into a waiting batch, and records without a delay are delivered at
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.delays.delay_headers import are_direct, cancelled_offsets, delivery_times
from protocol.delays.retry_headers import is_sent_again
from protocol.delays.waiting_batch import build_cancellation, build_waiting
from protocol.errors import ApiError, ErrorCode
from protocol.records.record import parse_record, record_bytes
from protocol.records.varints import read_varint

if TYPE_CHECKING:
    from protocol.delays.delay_headers import DelayLimits
    from protocol.records.batch import BatchHeader

LARGE_BYTES: Final = 1 << 16
LARGE_COMPRESSED_BYTES: Final = 1 << 13
"""Looking into a larger batch may take milliseconds: it is done beside the event loop."""

ADDED_BYTES: Final = 320
"""Upper bound of the bytes that delivery adds to a record, a batch of its own included."""
RETRIED_BYTES: Final = 2 * ADDED_BYTES
"""The same, for a record sent to a retry topic: it can be sent again with the bytes that were
added."""


def wrap(
    batch: bytearray | memoryview, header: BatchHeader, limits: DelayLimits, now_ms: int
) -> bytearray | memoryview:
    """Return the batch to append instead of `batch`, which is sound and was received at `now_ms`.

    Raises RecordsRejectedError(INVALID_RECORD) for headers that are wrong, and MESSAGE_TOO_LARGE
    for a record that could not be delivered.
    """
    body = record_bytes(batch, header)
    if limits.retries is None:  # there it may be somebody's header that a consumer passes on
        offsets = cancelled_offsets(body, header.record_count)
        if offsets is not None:
            return build_cancellation(header, offsets, now_ms)
    times = delivery_times(body, header.record_count, limits, now_ms)
    if limits.retries is None and are_direct(times):
        return batch
    added = ADDED_BYTES if limits.retries is None else RETRIED_BYTES
    _check_sizes(body, limits.largest_bytes, added)
    return build_waiting(batch, header, times, now_ms)


def _check_sizes(body: bytes | bytearray, most: int, added: int) -> None:
    """Refuse a record that does not fit into the log without the batch's compression."""
    if len(body) + added <= most:
        return
    position = 0
    while position < len(body):
        length, start = read_varint(body, position)
        if length + added > most:
            (*_, headers), _ = parse_record(body, position)
            more = ADDED_BYTES if is_sent_again(headers) else added
            if length + more > most:
                raise ApiError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"a record of {length} bytes waits: uncompressed and with {more} bytes more "
                    f"it must fit into max.message.bytes and segment.bytes, {most}",
                )
        position = start + length
