"""Check a produced batch before the log appends it: the batch as a whole, and its records.

`check_produced` reads the header, takes the checksum, follows the chain of record lengths (see
`chain`), and looks into the first and the last record. Every record is looked into only when a rule
asks for it: on a compacted topic, where each needs a key; when the topic limits how old records may
be; and when the header's timestamps are out of range or contradict the records. The reasons for
this scope, and its cost, are in docs/decisions/0009-record-validation.md; the error codes are those
of a live Apache Kafka 4.3.1, but for the differences named there.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final, NamedTuple

from google_crc32c import value as crc32c

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import (
    CHECKED_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    DELAY_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    POINT_BIT,
    RELAY_BIT,
    BatchHeader,
    assign_max_timestamp,
    parse_header,
)
from protocol.records.chain import last_record
from protocol.records.client_streams import ManyPiecesError, decompress_readable
from protocol.records.compression import DEFAULT_LIMIT, Codec
from protocol.records.outline import ManyHeadersError, has_key, header_count, outline_record
from protocol.records.plain import NOT_PLAIN, is_plain_first, plain_last_timestamp
from protocol.records.record import INT64_MAX, INT64_MIN, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.delays.delay_headers import DelayLimits

FIRST_VERSION_WITH_ZSTD: Final = 7
FIRST_VERSION_WITH_MAGIC_2: Final = 3
NEWEST_VERSION: Final = 13
OLD_MAGICS: Final = (0, 1)

NO_LIMIT_MS: Final = INT64_MAX
HOUR_MS: Final = 3_600_000

MAX_RECORD_ERRORS: Final = 1000
"""Records of one batch that an answer names as wrong."""

PASSING_BYTES: Final = 1 << 20
PASSING_RATIO: Final = 4
"""Limits of decompression in passing: this many bytes, or this many times the size of the batch. It
takes one to four milliseconds; two kilobytes of zstd can stand for 60 MB, which take 80."""

FIELDS_IN_PASSING: Final = 5000
"""Records and headers looked into in passing, a microsecond each: 1 KB can stand for 400,000."""
TURN_RECORDS: Final = 1000
"""Records that are looked into between two pauses."""

_RECORDS_POSITION: Final = HEADER_BYTES - CHECKED_POSITION
"""Start of the records in the part that the checksum covers."""

_CODECS: Final = tuple(Codec)
_ZSTD: Final = int(Codec.ZSTD)
"""Looking members of an enumeration up costs more than all other comparisons of a header."""

_OUR_BITS: Final = DELAY_BIT | POINT_BIT | RELAY_BIT
_REFUSED_BITS: Final = CONTROL_BIT | _OUR_BITS | DELETE_HORIZON_BIT | LOG_APPEND_TIME_BIT


@dataclasses.dataclass(frozen=True, slots=True)
class ProduceRules:
    """Rules of a topic's configuration for produced batches; built once per change."""

    max_message_bytes: int = 1_048_588
    is_compacted: bool = False
    is_log_append_time: bool = False
    timestamp_before_max_ms: int = NO_LIMIT_MS
    timestamp_after_max_ms: int = HOUR_MS
    target_codec: Codec | None = None
    """Codec that all batches are recompressed to; None keeps the producer's codec."""
    compression_level: int | None = None
    """Level of the target codec; None is that codec's own default."""
    max_decompressed_bytes: int = DEFAULT_LIMIT
    is_hurried: bool = False
    """True if a batch that is slow to check is left to others (LargeContentsError)."""
    pause: Callable[[], object] | None = None
    """Called at intervals during a long check of a batch, on a thread."""
    delays: DelayLimits | None = None
    """The topic's limits for delayed records; None without `delivery.delay.enable`."""


class RecordError(NamedTuple):
    """Reason for refusing one record of a batch."""

    batch_index: int
    message: str


class RecordsRejectedError(ApiError):
    """Single records break a rule of the topic; Produce version 8 and later report which."""

    def __init__(self, code: ErrorCode, message: str, errors: Sequence[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(errors)


class AsideError(Exception):
    """The batch takes too long to check on the event loop: it is left to `recompression`."""


class OtherCodecError(AsideError):
    """The batch is not in the topic's codec."""


class LargeContentsError(AsideError):
    """The batch decompresses to more, or has more fields, than is looked at in passing."""


DEFAULT_RULES: Final = ProduceRules()


def check_produced(
    buffer: bytearray | memoryview,
    rules: ProduceRules = DEFAULT_RULES,
    now_ms: int | None = None,
    api_version: int = NEWEST_VERSION,
) -> BatchHeader:
    """Header of the one sound batch that fills `buffer`; raises ApiError with Kafka's code.

    Raises OtherCodecError before looking at the records, if `rules` want another codec, and
    LargeContentsError if they are in a hurry and it takes long to decompress or follow the records.
    Timestamps are held against `now_ms`, unless it is None. `buffer` is only written to when the
    batch misstates its latest timestamp, which is then put right, as Apache does.
    """
    received = len(buffer)
    if received < HEADER_BYTES:
        raise _unreadable(buffer, api_version)
    header = parse_header(buffer)
    first, length, _, magic, crc, attributes, delta, _, _, producer, _, sequence, count = header
    size = LENGTH_OVERHEAD + length
    if not HEADER_BYTES <= size <= received or magic != MAGIC:
        raise _unreadable(buffer, api_version)
    if size > rules.max_message_bytes:
        raise _too_large(size, rules)
    if rules.target_codec is not None and attributes & CODEC_MASK != rules.target_codec:
        raise OtherCodecError
    # One copy serves the checksum, whose library takes no views, and the walk through the records.
    checked = memoryview(buffer)[CHECKED_POSITION:size].tobytes()
    if crc32c(checked) != crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "the checksum of the record batch is wrong")
    codec = attributes & CODEC_MASK
    if (  # checks no sound batch fails, and rare cases
        first != 0
        or size != received
        or not delta == count - 1 >= 0
        or attributes & _REFUSED_BITS
        or sequence < 0 <= producer
        or codec >= _ZSTD
    ):
        _check_header(header, received, api_version)
    if codec:
        compressed = memoryview(checked)[_RECORDS_POSITION:]
        body = _decompressed(_CODECS[codec], compressed, rules)
        return _check_records(buffer, header, (body, 0), rules, now_ms)
    return _check_records(buffer, header, (checked, _RECORDS_POSITION), rules, now_ms)


def _decompressed(codec: Codec, data: memoryview, rules: ProduceRules) -> bytes | bytearray:
    limit = most = rules.max_decompressed_bytes
    if rules.is_hurried:
        limit = min(most, max(PASSING_BYTES, PASSING_RATIO * len(data)))
    try:
        return decompress_readable(codec, data, limit, is_hurried=rules.is_hurried)
    except ManyPiecesError:
        raise LargeContentsError from None
    except ApiError as error:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE and limit < most:
            raise LargeContentsError from None
        raise


_Body = tuple[bytes | bytearray, int]
"""Records, decompressed, and where in the bytes they begin."""


def _check_header(header: BatchHeader, received: int, api_version: int) -> None:
    """Check for contradictions, within the header and with `received`, and for forbidden values."""
    _check_attributes(header, api_version)
    _check_numbers(header, received)


def _check_records(
    buffer: bytearray | memoryview,
    header: BatchHeader,
    body: _Body,
    rules: ProduceRules,
    now_ms: int | None,
) -> BatchHeader:
    data, start = body
    count = header.record_count
    try:
        first_time, last_time = _end_times(data, start, count, rules)
        base, newest = header.base_timestamp, header.max_timestamp
        if (
            base + first_time <= newest >= base + last_time
            and not rules.is_compacted
            and (rules.is_log_append_time or _is_in_time(base, newest, rules, now_ms))
        ):
            return header
        if count <= _most_fields(rules):
            return _check_each_record(buffer, header, body, rules, now_ms)
    except ManyHeadersError:
        pass
    raise LargeContentsError


def _most_fields(rules: ProduceRules) -> int:
    """Limit of records and headers to look into."""
    return FIELDS_IN_PASSING if rules.is_hurried else INT64_MAX


def _end_times(
    data: bytes | bytearray, start: int, count: int, rules: ProduceRules
) -> tuple[int, int]:
    """Return the timestamp deltas of the first and last record, after checking their other fields.

    Raises ManyHeadersError if one of the two has too many.
    """
    most, pause = _most_fields(rules), rules.pause
    if count == 1:
        end, time, offset, _, _ = outline_record(data, start, most, pause)
        if end == len(data) and offset == 0:
            return time, time
    last = last_record(data, count, start)
    if is_plain_first(data, start):
        last_time = plain_last_timestamp(data, last, count - 1)
        if last_time != NOT_PLAIN:
            return 0, last_time
    _, first_time, first_offset, _, _ = outline_record(data, start, most, pause)
    _, last_time, last_offset, _, _ = outline_record(data, last, most, pause)
    if first_offset != 0 or last_offset != count - 1:
        raise invalid(f"offset deltas of {count} records go from {first_offset} to {last_offset}")
    return first_time, last_time


def _is_in_time(base: int, newest: int, rules: ProduceRules, now_ms: int | None) -> bool:
    """Return whether the header's timestamps prove that no record can be too old or too new."""
    return (
        base >= NO_TIMESTAMP
        and rules.timestamp_before_max_ms == NO_LIMIT_MS
        and (now_ms is None or newest - now_ms <= rules.timestamp_after_max_ms)
    )


def _check_each_record(
    buffer: bytearray | memoryview,
    header: BatchHeader,
    body: _Body,
    rules: ProduceRules,
    now_ms: int | None,
) -> BatchHeader:
    """Look into every record; about 1 us each. Raises ManyHeadersError if all have too many."""
    left, pause = _most_fields(rules), rules.pause
    errors: list[RecordError] = []
    code = ErrorCode.INVALID_RECORD
    latest = NO_TIMESTAMP
    data, position = body
    for index in range(header.record_count):
        position, timestamp_delta, offset_delta, key_at, headers_at = outline_record(
            data, position, left, pause
        )
        if data[headers_at]:
            left -= header_count(data, headers_at)
        if index % TURN_RECORDS == TURN_RECORDS - 1 and pause is not None:
            pause()
        timestamp = header.base_timestamp + timestamp_delta
        latest = max(latest, timestamp)
        if offset_delta != index or not INT64_MIN <= timestamp <= INT64_MAX:
            raise invalid(
                f"record {index} has the offset delta {offset_delta}, the timestamp {timestamp}"
            )
        if rules.is_compacted and not has_key(data, key_at):
            errors.append(RecordError(index, "a compacted topic takes no record without a key"))
        elif reason := _out_of_time(timestamp, rules, now_ms):
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(RecordError(index, reason))
        if len(errors) >= MAX_RECORD_ERRORS:
            break
    if errors:
        raise RecordsRejectedError(
            code, f"{errors[0].message} (record {errors[0].batch_index})", errors
        )
    if latest != header.max_timestamp:
        assign_max_timestamp(buffer, 0, latest)
        return parse_header(buffer)
    return header


def _out_of_time(timestamp: int, rules: ProduceRules, now_ms: int | None) -> str | None:
    if rules.is_log_append_time or timestamp == NO_TIMESTAMP or now_ms is None:
        return None
    age_ms = now_ms - timestamp
    if age_ms > rules.timestamp_before_max_ms:
        return (
            f"timestamp {timestamp} is {age_ms} ms old, "
            f"message.timestamp.before.max.ms is {rules.timestamp_before_max_ms}"
        )
    if -age_ms > rules.timestamp_after_max_ms:
        return (
            f"timestamp {timestamp} is {-age_ms} ms in the future, "
            f"message.timestamp.after.max.ms is {rules.timestamp_after_max_ms}"
        )
    return None


def check_size(size: int, rules: ProduceRules) -> None:
    """Raise MESSAGE_TOO_LARGE for a batch of more bytes than the topic takes."""
    if size > rules.max_message_bytes:
        raise _too_large(size, rules)


def _too_large(size: int, rules: ProduceRules) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the record batch has {size} bytes, max.message.bytes is {rules.max_message_bytes}",
    )


def _unreadable(buffer: bytearray | memoryview, api_version: int) -> ApiError:
    """Return the error for a `buffer` that does not begin with a whole batch of format 2."""
    received = len(buffer)
    if received <= LENGTH_OVERHEAD + 4:
        return invalid(f"{received} bytes hold no record batch")
    size = LENGTH_OVERHEAD + int.from_bytes(buffer[8:12], "big", signed=True)
    magic = buffer[16]
    if magic in OLD_MAGICS and api_version < FIRST_VERSION_WITH_MAGIC_2:
        return ApiError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"messages of format {magic} are not taken any more, only record batches (format 2)",
        )
    if magic in OLD_MAGICS:
        return invalid(f"format {magic} is not allowed in Produce version {api_version}, only 2")
    if magic != MAGIC:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"{magic} is no record format")
    if size < HEADER_BYTES:
        return ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"{size} bytes are less than the header of a record batch"
        )
    return invalid(f"the record batch claims {size} bytes, {received} were sent")


def _check_attributes(header: BatchHeader, api_version: int) -> None:
    """Refuse attributes that clients may not set, or not in this version."""
    codec = header.attributes & CODEC_MASK
    if codec > Codec.ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {codec} does not exist"
        )
    if codec == Codec.ZSTD and api_version < FIRST_VERSION_WITH_ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce version {FIRST_VERSION_WITH_ZSTD}",
        )
    if header.is_control:
        raise invalid("clients may not write control batches")
    if header.is_log_append_time:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP, "only the broker may mark timestamps as its own"
        )
    if header.attributes & _OUR_BITS:
        raise invalid("only the broker may write batches that wait or were delivered")
    if header.has_delete_horizon:
        raise invalid("only the broker may set a delete horizon")


def _check_numbers(header: BatchHeader, received: int) -> None:
    """Say which number of a header is wrong, of those that `check_produced` compares."""
    size, count = header.size_in_bytes, header.record_count
    if size != received:
        raise invalid(
            f"{received - size} bytes follow the record batch; a partition takes one at a time"
        )
    if header.base_offset != 0:
        raise invalid(f"the base offset is {header.base_offset}, a client's must be 0")
    if count <= 0 or header.last_offset_delta != count - 1:
        raise invalid(f"{count} records cannot have offset deltas up to {header.last_offset_delta}")
    if header.base_sequence < 0 <= header.producer_id:
        raise invalid(
            f"the base sequence is {header.base_sequence}, with producer id {header.producer_id}"
        )
