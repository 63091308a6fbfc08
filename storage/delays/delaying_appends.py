"""Leader appends to a log whose records may wait (`delivery.delay.enable`).

A batch with a delay in it is put into a waiting batch as it is (`protocol.delays.waiting_batch`),
which is checked against its producer's sequence and written like any other. Batches that concern
delays are noted in the segment's `.delays`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.delays.delay_headers import MARK
from protocol.delays.delayed_batch import LARGE_BYTES, LARGE_COMPRESSED_BYTES, wrap
from protocol.delays.waiting_batch import is_cancellation, parse_waiting
from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import (
    CONTROL_BIT,
    DELAY_BIT,
    HEADER_BYTES,
    assign_attributes,
    assign_log_append_time,
    parse_header,
)
from protocol.records.compression import Codec
from protocol.records.validation import LargeContentsError, check_produced
from storage.append.append_source import AppendOrigin
from storage.append.leader_appends import LeaderAppends
from storage.delays.delay_index import DelayKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.delays.delay_headers import DelayLimits
    from protocol.records.batch import BatchHeader
    from storage.append.append_info import AppendInfo
    from storage.append.append_source import AppendSource
    from storage.log.log_contents import LogContents
    from storage.log.log_rules import LogRules
    from storage.log.rolls import Rolls


def _ignore() -> None:
    """Default without delivery: this broker does not lead."""


def _refuse(_offsets: Sequence[int]) -> None:
    raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "it is not known yet what waits")


class DelayingAppends(LeaderAppends):
    """In the place of `LeaderAppends` where records may wait, or some do."""

    __slots__ = ("_check_waiting", "_is_of_client", "_poke")

    def __init__(self, contents: LogContents, rules: LogRules, rolls: Rolls) -> None:
        super().__init__(contents, rules, rolls)
        self._is_of_client = False
        """True if the current append may be a client's cancellation."""
        self.listen(None, None)

    def listen(
        self,
        poke: Callable[[], None] | None,
        check_waiting: Callable[[Sequence[int]], None] | None,
    ) -> None:
        """Have `poke` called after each append that has to do with delays, but for deliveries.

        `check_waiting` raises ApiError unless a record waits at each offset, or is cancelled.
        """
        self._poke = poke or _ignore
        self._check_waiting = check_waiting or _refuse

    def append(
        self, records: memoryview, leader_epoch: int, now_ms: int, source: AppendSource
    ) -> AppendInfo:
        """As `LeaderAppends.append`; the offsets of a batch that waits are those of the wait.

        A batch that is CHECKED may be a waiting batch already, made beside the loop.
        """
        directory = self._files.place.directory
        if directory.failure is not None:
            raise directory.failure.with_traceback(None)
        rules = self._rules.produce_rules
        origin = source.origin
        if origin is AppendOrigin.CLIENT:
            header = check_produced(records, rules, now_ms, source.api_version)
            if rules.delays is not None:
                records = _wrapped(records, header, rules.delays, now_ms)
                header = parse_header(records)
        else:
            header = parse_header(records)
            if origin is AppendOrigin.COORDINATOR and header.size_in_bytes != len(records):
                return self._append_each(records, leader_epoch, now_ms, source)
        self._is_of_client = origin is not AppendOrigin.COORDINATOR
        if rules.is_log_append_time and not header.attributes & DELAY_BIT:
            assign_log_append_time(records, 0, now_ms)
            header = parse_header(records)
        return self._dispatch(records, header, leader_epoch, now_ms, source)

    def _dispatch(
        self,
        records: memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        source: AppendSource,
    ) -> AppendInfo:
        attributes = header.attributes
        if header.producer_id < 0:
            info = self._append_batch(records, header, leader_epoch, now_ms)
        elif not attributes & CONTROL_BIT or attributes & DELAY_BIT:
            info = self._append_of_producer(records, header, leader_epoch, now_ms, source)
        else:
            # The transaction may have records that wait, and their delay begins now.
            assign_attributes(records, 0, attributes | DELAY_BIT)
            header = parse_header(records)
            info = self._append_marker(records, header, leader_epoch, now_ms, source)
        if header.attributes & CONTROL_BIT:
            self._poke()
        return info

    def _check_cancellation(self, records: memoryview, header: BatchHeader) -> None:
        """Refuse a cancellation of what does not wait."""
        if kind_of(header) is DelayKind.WAITING and is_cancellation(records):
            self._check_waiting(parse_waiting(records).numbers)

    def _append_batch(
        self, records: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        if self._is_of_client and header.attributes & DELAY_BIT:
            # Not before: the duplicate of one that was taken is none of those that come too late.
            self._check_cancellation(records, header)
        info = super()._append_batch(records, header, leader_epoch, now_ms)
        if header.attributes & DELAY_BIT:
            position = self._segments.active.size - len(records)
            self._files.note_delay(header._replace(base_offset=info.first_offset), position)
        return info


def _wrapped(
    records: memoryview, header: BatchHeader, limits: DelayLimits, now_ms: int
) -> memoryview:
    """The batch, or a waiting one around it. LargeContentsError if that takes long."""
    size = len(records)
    if header.codec is Codec.NONE:
        is_by_mark = limits.default_ms == 0 and limits.retries is None
        if is_by_mark and MARK not in records[HEADER_BYTES:].tobytes():
            return records
        is_large = size > LARGE_BYTES
    else:
        is_large = size > LARGE_COMPRESSED_BYTES
    if is_large:
        raise LargeContentsError
    return memoryview(wrap(records, header, limits, now_ms))
