"""The expected state of a log with delays, found by reading all of it: no index, no queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from protocol.delays.header_names import CREATED_AT, SOURCE
from protocol.delays.retry_headers import ATTEMPT
from protocol.delays.waiting_batch import CANCELLED, parse_waiting
from protocol.records.batch import DELAY_BIT, RELAY_BIT, parse_header
from protocol.records.control import ControlType, parse_marker
from protocol.records.record import Record, iterate_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.log.log import Log

HEADERS_ADDED = {SOURCE, CREATED_AT, "delivery-point"}


@dataclass
class Waited:
    """A record that waited."""

    record: Record
    """The record as its producer sent it, under the offset at which it waited."""
    stated_ms: int | None
    """Earliest delivery time; None in a transaction without its end."""
    ready_at: int
    """Offset of what made it ready: its own batch, or the end of its transaction."""
    is_cancelled: bool = False


@dataclass
class Delivered:
    """A record that was delivered."""

    at: int
    """Offset in the log."""
    record: Record
    source: int


@dataclass
class JudgedLog:
    """All delays of one log."""

    waited: dict[int, Waited] = field(default_factory=dict)
    delivered: list[Delivered] = field(default_factory=list)
    direct: dict[int, Record] = field(default_factory=dict)
    undecided: dict[int, list[tuple[Waited, int]]] = field(default_factory=dict)
    """Records of open transactions with the time that they state, by producer id."""
    opened: dict[int, int] = field(default_factory=dict)
    """Offset of the first batch that waits or cancels in an open transaction, by producer id."""
    cancelling: dict[int, list[int]] = field(default_factory=dict)
    """Offsets that open transactions cancel."""

    @property
    def delivered_sources(self) -> list[int]:
        return [one.source for one in self.delivered]


def judge(log: Log, from_offset: int = 0) -> JudgedLog:
    """Read the log."""
    found = JudgedLog()
    begin = max(from_offset, log.log_start_offset)
    for batch in log.read_batches(begin, log.log_end_offset):
        header = parse_header(batch)
        if not header.attributes & DELAY_BIT:
            found.direct.update((record.offset, record) for record in iterate_records(batch))
        elif not header.is_control:
            found.delivered += [_delivered(record) for record in iterate_records(batch)]
        elif header.ends_transaction:
            _end(found, batch)
        elif not header.attributes & RELAY_BIT:
            _wait(found, batch)
    return found


def _end(found: JudgedLog, batch: memoryview) -> None:
    header, marker = parse_header(batch), parse_marker(batch)
    assert marker is not None
    for one, time in found.undecided.pop(header.producer_id, ()):
        if marker.type is ControlType.COMMIT:
            one.stated_ms = _stated(time, header.max_timestamp)
            one.ready_at = header.base_offset
    found.opened.pop(header.producer_id, None)
    offsets = found.cancelling.pop(header.producer_id, ())
    if marker.type is ControlType.COMMIT:
        _cancel(found, offsets)


def _cancel(found: JudgedLog, offsets: Iterable[int]) -> None:
    """Mark as cancelled the records not delivered yet; a delivered one stays delivered."""
    for offset in found.waited.keys() & set(offsets) - set(found.delivered_sources):
        found.waited[offset].is_cancelled = True


def _wait(found: JudgedLog, batch: memoryview) -> None:
    header, waiting = parse_header(batch), parse_waiting(batch)
    if header.is_transactional:
        found.opened.setdefault(header.producer_id, header.base_offset)
    if waiting.type == CANCELLED:
        if header.is_transactional:
            found.cancelling.setdefault(header.producer_id, []).extend(waiting.numbers)
        else:
            _cancel(found, waiting.numbers)
        return
    for index, record in enumerate(iterate_records(waiting.inner)):
        moved = record._replace(offset=header.base_offset + index)
        one = found.waited[moved.offset] = Waited(moved, None, header.base_offset)
        if header.is_transactional:
            timed = (one, waiting.numbers[index])
            found.undecided.setdefault(header.producer_id, []).append(timed)
        else:
            one.stated_ms = _stated(waiting.numbers[index], waiting.received_ms)


def check_order(found: JudgedLog, *, is_retry: bool = False) -> None:
    """Deliveries come in the order of (due, source), each record once and not before it may.

    In a retry topic each has one attempt more than when it was sent.
    """
    keys = [(one.record.timestamp, one.source) for one in found.delivered]
    assert keys == sorted(set(keys))
    assert len(set(found.delivered_sources)) == len(found.delivered)
    for one in found.delivered:
        waited = found.waited.get(one.source)
        if waited is None:
            continue  # retention has taken the batch in which it waited
        assert waited.stated_ms is not None, "its transaction is not committed"
        assert one.at > waited.ready_at
        assert one.record.timestamp >= waited.stated_ms
        original = waited.record
        assert (one.record.key, one.record.value) == (original.key, original.value)
        added = dict(one.record.headers)
        if is_retry:
            made = int(dict(original.headers).get(ATTEMPT) or b"0")
            assert added[ATTEMPT] == b"%d" % (made + 1)
        else:
            own = tuple(header for header in one.record.headers if header[0] not in HEADERS_ADDED)
            assert own == original.headers
        assert added[CREATED_AT] == b"%d" % original.timestamp


def check_complete(found: JudgedLog) -> None:
    """Check that all due records were delivered, and nothing else."""
    delivered = set(found.delivered_sources)
    for offset, one in found.waited.items():
        is_wanted = one.stated_ms is not None and not one.is_cancelled
        assert (offset in delivered) == is_wanted, (offset, one)


def _delivered(record: Record) -> Delivered:
    source = dict(record.headers)[SOURCE]
    assert source is not None
    return Delivered(record.offset, record, int(source))


def _stated(time: int, since_ms: int) -> int:
    return since_ms - 1 - time if time < 0 else time
