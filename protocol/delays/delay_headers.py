"""Headers that set a record's delivery time.

    deliver-at       milliseconds since the epoch: 1767225600000
    deliver-after    milliseconds, or a number with a unit: 1500, 500ms, 90s, 5m, 2h, 1d

A record may have one of them, once. In a topic without `delivery.delay.enable` they mean nothing.

`delivery_times` gives a number for each record. One that is not negative is a time since the epoch;
a negative one is -1 less the delay, which begins when the batch is received or, in a transaction,
when that commits:

    deliver-at: 1767225600000        1767225600000
    deliver-after: 2s                        -2001
    neither, and no default                     -1

In a retry topic no record cancels, and the number of attempts decides instead (`retry_headers`); a
dead letter has the number DEAD, as it is not delivered.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.delays.header_names import CANCEL, DELIVER_AFTER, DELIVER_AT
from protocol.delays.retry_headers import DEAD, RetryRules, delay_of
from protocol.errors import ErrorCode
from protocol.records.outline import outline_record
from protocol.records.record import parse_record
from protocol.records.validation import MAX_RECORD_ERRORS, RecordError, RecordsRejectedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.record import Header

CANCEL_MARK: Final = CANCEL.encode()
MARK: Final = b"deliver-"
"""Part of each name: records without these bytes need no look at their headers."""
MOST_CANCELLED: Final = 300
"""Records that one batch may cancel. Fixed: the event loop looks at each of them, for 30 µs."""
AT_ONCE: Final = -1
"""The number of a record without a delay."""
LONGEST_DELAY_MS: Final = 1 << 62
"""Limit for every topic: each delivery time fits in an int64, and no delay has the number of a dead
letter."""

_UNITS_MS: Final = {
    b"": 1,
    b"ms": 1,
    b"s": 1_000,
    b"m": 60_000,
    b"h": 3_600_000,
    b"d": 86_400_000,
}
_LONE_AT: Final = b"\x02\x14" + DELIVER_AT.encode()
_LONE_AFTER: Final = b"\x02\x1a" + DELIVER_AFTER.encode()
"""First bytes of the headers of a record with only this one: header count and length of the
name."""
_AT = re.compile(rb"[0-9]{1,19}")
_AFTER = re.compile(rb"([0-9]{1,19})(ms|s|m|h|d|)")
_SHOWN_BYTES: Final = 40


class DelayLimits(NamedTuple):
    """The delay configuration of a topic."""

    default_ms: int
    """Delay of records without delay headers."""
    most_ms: int
    largest_bytes: int
    """Size limit of a delivered batch, so that the log accepts it."""
    retries: RetryRules | None = None
    """Of a retry topic, where the number of attempts decides."""


def delivery_times(
    body: bytes | bytearray, count: int, limits: DelayLimits, now_ms: int
) -> list[int]:
    """Return the delivery time of each of the `count` sound records of a body.

    Raises RecordsRejectedError(INVALID_RECORD), which names the records whose headers are wrong.
    """
    default = AT_ONCE - limits.default_ms
    if limits.retries is None and MARK not in body:
        return [default] * count
    times: list[int] = []
    errors: list[RecordError] = []
    position = 0
    for index in range(count):
        end, _, _, _, headers_at = outline_record(body, position)
        try:
            time = _lone_time(body, headers_at, end, limits, now_ms)
            if time is None:
                (_, _, _, _, headers), _ = parse_record(body, position)
                time = _delivery_time(headers, default, limits, now_ms)
            times.append(time)
        except ValueError as error:
            errors.append(RecordError(index, str(error)))
            if len(errors) >= MAX_RECORD_ERRORS:
                break
        position = end
    _refuse(errors)
    return times


def _lone_time(
    body: bytes | bytearray, headers_at: int, end: int, limits: DelayLimits, now_ms: int
) -> int | None:
    """Return the number of a sound record with one header, the usual case, or none about delays.

    None if `_delivery_time` must decide; ValueError as there. The value is the rest of the record
    after a length of one byte: with a longer length, it does not match.
    """
    if limits.retries is not None:
        return None
    if body.startswith(_LONE_AT, headers_at):
        value = bytes(body[headers_at + len(_LONE_AT) + 1 : end])
        if not _AT.fullmatch(value):
            return None
        at_ms = int(value)
        _check_delay(at_ms - now_ms, limits)
        return at_ms
    if body.startswith(_LONE_AFTER, headers_at):
        value = bytes(body[headers_at + len(_LONE_AFTER) + 1 : end])
        if not _AFTER.fullmatch(value):
            return None
        delay_ms = _delay_of(value)
        _check_delay(delay_ms, limits)
        return AT_ONCE - delay_ms
    return AT_ONCE - limits.default_ms if body.find(MARK, headers_at, end) < 0 else None


def are_direct(times: list[int]) -> bool:
    """Return whether no record of a batch has a delay."""
    return times.count(AT_ONCE) == len(times)


def cancelled_offsets(body: bytes | bytearray, count: int) -> list[int] | None:
    """The offsets that a batch of cancellations names; None for a batch of ordinary records.

    Raises RecordsRejectedError(INVALID_RECORD) for a batch of both, or where no offset is named.
    """
    if CANCEL_MARK not in body:
        return None
    named: list[int] = []
    errors: list[RecordError] = []
    position = 0
    is_of_cancellations = False
    for index in range(count):
        (_, _, _, _, headers), position = parse_record(body, position)
        values = [value for name, value in headers if name == CANCEL]
        is_of_cancellations = is_of_cancellations or bool(values)
        if len(values) == 1 and values[0] is not None and _AT.fullmatch(values[0]):
            named.append(int(values[0]))
        elif values:
            message = f"{CANCEL} takes the offset of one record that waits"
            errors.append(RecordError(index, message))
        else:
            message = f"records with {CANCEL} have a batch of their own"
            errors.append(RecordError(index, message))
    if not is_of_cancellations:
        return None
    if count > MOST_CANCELLED:
        message = f"a batch cancels {MOST_CANCELLED} records at most, this one {count}"
        errors.append(RecordError(MOST_CANCELLED, message))
    _refuse(errors[:MAX_RECORD_ERRORS])
    return named


def _refuse(errors: Sequence[RecordError]) -> None:
    if errors:
        first = errors[0]
        message = f"{first.message} (record {first.batch_index})"
        raise RecordsRejectedError(ErrorCode.INVALID_RECORD, message, errors)


def _delivery_time(
    headers: Sequence[Header], default: int, limits: DelayLimits, now_ms: int
) -> int:
    """Return the number of one record; ValueError if its headers are invalid."""
    if limits.retries is not None:
        delay_ms = delay_of(headers, limits.retries)
        return DEAD if delay_ms is None else AT_ONCE - delay_ms
    stated = [header for header in headers if header[0] in (DELIVER_AT, DELIVER_AFTER)]
    if not stated:
        return default
    if len(stated) > 1:
        raise ValueError("a record takes one of deliver-at and deliver-after, once")
    name, value = stated[0]
    if name == DELIVER_AT:
        at_ms = _time_of(value)
        _check_delay(at_ms - now_ms, limits)
        return at_ms
    delay_ms = _delay_of(value)
    _check_delay(delay_ms, limits)
    return AT_ONCE - delay_ms


def _time_of(value: bytes | None) -> int:
    if value is None or not _AT.fullmatch(value):
        raise ValueError(f"deliver-at is {_shown(value)}, not milliseconds since the epoch")
    return int(value)


def _delay_of(value: bytes | None) -> int:
    match = _AFTER.fullmatch(value) if value is not None else None
    if match is None:
        raise ValueError(
            f"deliver-after is {_shown(value)}, not a number with one of the units ms, s, m, h, d"
        )
    return int(match[1]) * _UNITS_MS[match[2]]


def _check_delay(delay_ms: int, limits: DelayLimits) -> None:
    if delay_ms > limits.most_ms:
        raise ValueError(
            f"a delay of {delay_ms} ms is more than delivery.delay.max.ms, {limits.most_ms}"
        )


def _shown(value: bytes | None) -> str:
    return "null" if value is None else repr(value[:_SHOWN_BYTES])[1:]
