"""Due records of one partition, collected in one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.delivery.sources import OpenedBatch
from broker.delivery.waiting_queue import Waiting
from broker.delivery.waiting_records import up_to
from protocol.delays.delivered_batch import build_delivered
from protocol.delays.stored_record import DueRecord
from protocol.records.builder import TimestampType
from protocol.records.compression import Codec
from storage.log.log_rules import TARGET_CODECS

if TYPE_CHECKING:
    from broker.delivery.delivery_parts import DeliveryLimits
    from broker.delivery.followed_log import FollowedLog
    from config.topic import TopicConfig

RECORD_BYTES: Final = 192
BATCH_BYTES: Final = 128
"""Upper bound of the bytes of a record besides its fields and headers, and of a batch besides."""
SLOW_CODECS: Final = {Codec.GZIP, Codec.ZSTD}
"""Codecs not used for a record that is large by itself: they would block the event loop."""


class DueBatch:
    """Records in the order in which they are due, taken out of the queue."""

    def __init__(self, config: TopicConfig, limits: DeliveryLimits) -> None:
        self._config = config
        self._limits = limits
        self._most_bytes = min(limits.batch_bytes, config.segment_bytes - BATCH_BYTES)
        self._due: list[DueRecord] = []
        self._codec = Codec.NONE
        self._size = 0
        self.is_full = False
        """More may be due than was taken."""
        self.passed = 0
        """Records that were taken out of the queue and are not to be delivered."""

    def __len__(self) -> int:
        return len(self._due)

    @property
    def last(self) -> Waiting:
        """The last record, up to which all is delivered with this batch."""
        return up_to(Waiting(self._due[-1].due_ms, self._due[-1].record.offset))

    def gather(self, log: FollowedLog, now_ms: int) -> memoryview | None:
        """Take records due by `now_ms`, as many as fit, and pass by no more than that number.

        A record whose due time is later than its stated one is delivered at the stated time, behind
        those due before it: the clock was set back, and may take years to catch up.

        Returns a waiting batch that must be opened beside the event loop, if nothing could be taken
        without it.
        """
        queue, sources = log.queue, log.sources
        most = self._limits.batch_records
        while len(self._due) + self.passed < most and self._size < self._most_bytes:
            head = queue.peek()
            if head is None or head.stated_ms > now_ms:
                return None
            found = None if log.is_gone(head.offset) else sources.find(head.offset)
            if found is None:
                log.pass_by()
                self.passed += 1
            elif isinstance(found, OpenedBatch):
                if not self._take(found, head):
                    break
                queue.pop()
            else:
                self.is_full = True
                return None if self._due else found
        self.is_full = True
        return None

    def build(self, needed_from: int) -> memoryview:
        """The batch to append, compressed by the topic's codec, or by that of the first record.

        No other waiting record has a lower offset than `needed_from`.
        """
        config = self._config
        wanted = TARGET_CODECS[config.compression_type]
        codec = self._codec if wanted is None else wanted
        if self._size > self._limits.batch_bytes and codec in SLOW_CODECS:
            codec = Codec.NONE
        is_stamped = config.message_timestamp_type == "LogAppendTime"
        kind = TimestampType.LOG_APPEND_TIME if is_stamped else TimestampType.CREATE_TIME
        is_retry = config.is_retry_topic
        batch = build_delivered(self._due, needed_from, codec, kind, is_retry=is_retry)
        return memoryview(batch)

    def _take(self, opened: OpenedBatch, waiting: Waiting) -> bool:
        record = opened.stored(waiting.offset)
        size = RECORD_BYTES + len(record.fields) + len(record.headers)
        if self._due and self._size + size > self._most_bytes:
            return False
        if not self._due:
            self._codec = opened.codec
        self._due.append(DueRecord(waiting.due_ms, record))
        self._size += size
        return True
