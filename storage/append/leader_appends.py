"""Appending to a log as its leader.

A produced batch is checked, its base offset and leader epoch are patched where it lies in the
receive buffer, and it goes to the file in one write. Nothing here looks at single records, so the
cost of an append is that of its bytes plus a constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import (
    CONTROL_BIT,
    assign_base_offset,
    assign_log_append_time,
    parse_header,
)
from protocol.records.validation import check_produced
from storage.append.append_info import NO_TIMESTAMP, AppendInfo
from storage.append.append_source import AppendOrigin
from storage.producer.producer_history import find_repeated, recall
from storage.producer.producer_recovery import read_marker

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader
    from storage.append.append_source import AppendSource
    from storage.log.log_contents import LogContents
    from storage.log.log_rules import LogRules
    from storage.log.rolls import Rolls
    from storage.producer.producer import ProducedBatch

_CLIENT = AppendOrigin.CLIENT
_COORDINATOR = AppendOrigin.COORDINATOR


class LeaderAppends:
    """Checks batches, gives them their offsets, writes and notes them; one caller at a time."""

    __slots__ = (
        "_epochs",
        "_files",
        "_offsets",
        "_producers",
        "_rolls",
        "_rules",
        "_segments",
    )

    def __init__(self, contents: LogContents, rules: LogRules, rolls: Rolls) -> None:
        self._files = contents.files
        self._segments = contents.files.segments
        self._epochs = contents.files.epochs
        self._offsets = contents.offsets
        self._producers = contents.producers
        self._rules = rules
        self._rolls = rolls

    def append(
        self, records: memoryview, leader_epoch: int, now_ms: int, source: AppendSource
    ) -> AppendInfo:
        """Check and append the one batch in `records`, which is patched in place.

        A coordinator may send several batches, and they are not checked as a client's are (see
        `protocol.records.validation`). Raises ApiError with Kafka's code: MESSAGE_TOO_LARGE,
        INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE and others; nothing
        has been appended then. Raises AsideError for a batch that takes longer to check, or must be
        recompressed first, and then comes again as CHECKED.
        """
        directory = self._files.place.directory
        if directory.failure is not None:
            raise directory.failure.with_traceback(None)
        rules = self._rules.produce_rules
        origin = source.origin
        if origin is _CLIENT:
            header = check_produced(records, rules, now_ms, source.api_version)
        else:
            header = parse_header(records)
            if origin is _COORDINATOR and header.size_in_bytes != len(records):
                return self._append_each(records, leader_epoch, now_ms, source)
        if rules.is_log_append_time:
            assign_log_append_time(records, 0, now_ms)
            header = parse_header(records)
        if header.producer_id < 0:
            info = self._append_batch(records, header, leader_epoch, now_ms)
        elif header.attributes & CONTROL_BIT:
            info = self._append_marker(records, header, leader_epoch, now_ms, source)
        else:
            info = self._append_of_producer(records, header, leader_epoch, now_ms, source)
        return info

    def _append_each(
        self, records: memoryview, leader_epoch: int, now_ms: int, source: AppendSource
    ) -> AppendInfo:
        infos = []
        position = 0
        while position < len(records):
            end = position + parse_header(records, position).size_in_bytes
            infos.append(self.append(records[position:end], leader_epoch, now_ms, source))
            position = end
        infos[-1].first_offset = infos[0].first_offset
        return infos[-1]

    def _append_of_producer(
        self,
        records: memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        source: AppendSource,
    ) -> AppendInfo:
        try:
            duplicate = self._producers.check(header, source)
        except ApiError as error:
            duplicate = self._repeated(header, error.code)
            if duplicate is None:
                raise
        if duplicate is not None:
            return self._repeat(duplicate)
        info = self._append_batch(records, header, leader_epoch, now_ms)
        self._producers.update(header, info.first_offset)
        return info

    def _repeated(self, header: BatchHeader, refused_for: ErrorCode) -> ProducedBatch | None:
        """Look in the log for the batch that a refused one repeats."""
        producer = self._producers.producers.get(header.producer_id)
        if producer is None or refused_for is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return None
        start = self._offsets.log_start_offset
        with self._files.place.directory:
            if recall(producer, self._segments, start):
                duplicate = producer.find(header)
                if duplicate is not None:
                    return duplicate
            return find_repeated(producer, header, self._segments, start)

    def _append_marker(
        self,
        records: memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        source: AppendSource,
    ) -> AppendInfo:
        """Append a control batch of a coordinator, which may end a transaction."""
        marker = read_marker(header, records, self._offsets.log_end_offset)
        if marker is None:
            return self._append_batch(records, header, leader_epoch, now_ms)
        self._producers.check_marker(marker, source.transaction_version)
        info = self._append_batch(records, header, leader_epoch, now_ms)
        aborted = self._producers.end_transaction(marker)
        if aborted is not None:
            self._files.add_aborted(aborted)
        return info

    def _append_batch(
        self, records: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        """Give the batch its offset and write it."""
        size = len(records)
        max_timestamp = header.max_timestamp
        offsets = self._offsets
        base_offset = offsets.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if self._rolls.must_roll(size, last_offset, max_timestamp, now_ms):
            self._rolls.roll(now_ms)
        assign_base_offset(records, 0, base_offset, leader_epoch)
        if leader_epoch != self._epochs.latest:
            self._files.assign_epoch(leader_epoch, base_offset)
        segment = self._segments.active
        assert segment.base_offset <= base_offset <= last_offset, (segment, base_offset)
        position = segment.size
        try:
            segment.write(records)
            segment.account(size, base_offset, last_offset, max_timestamp)
        except OSError as error:
            segment.cut_back(position)
            raise self._files.place.directory.fail(error) from error
        offsets.log_end_offset = last_offset + 1
        is_stamped = self._rules.produce_rules.is_log_append_time
        return AppendInfo(
            base_offset,
            last_offset,
            max_timestamp,
            max_timestamp if is_stamped else NO_TIMESTAMP,
            offsets.log_start_offset,
        )

    def _repeat(self, duplicate: ProducedBatch) -> AppendInfo:
        is_stamped = self._rules.produce_rules.is_log_append_time
        info = AppendInfo(
            duplicate.base_offset,
            duplicate.last_offset,
            duplicate.timestamp,
            duplicate.timestamp if is_stamped else NO_TIMESTAMP,
            self._offsets.log_start_offset,
        )
        info.is_duplicate = True
        return info
