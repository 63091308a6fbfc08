"""Waiting records of one partition, for look-ups: listed a page at a time, and cancelled.

Records of open transactions do not wait yet; dead letters and cancelled records no longer do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.delivery.dead_letter_sender import committed
from broker.delivery.sources import OpenedBatch, Sources, is_large, open_batch
from broker.delivery.waiting_queue import Waiting
from broker.replication.replica_machine import ACKS_ALL
from protocol.delays.header_names import CANCEL
from protocol.delays.waiting_batch import build_cancellation, is_cancellation
from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import parse_header
from protocol.records.builder import NewRecord, build_batch
from storage.append.append_source import FROM_COORDINATOR
from storage.delays.delay_index import DelayKind
from storage.errors import DamagedDelaysError
from storage.key_index.key_hashes import ID_HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.delivery.followed_log import FollowedLog
    from broker.delivery.partition_delivery import PartitionDelivery
    from broker.runtime.slices import Slices
    from protocol.records.record import Record
    from storage.delays.delay_index import DelayEntry

PAGE_ENTRIES: Final = 256
"""Fixed: between two of them a client that has left is noticed."""
FIRST: Final = Waiting(-1, -1)
"""Start of a list."""


def never() -> bool:
    """Default: no time limit."""
    return False


def size_of(record: Record) -> int:
    """Bytes of its key, value and headers."""
    size = len(record.key or b"") + len(record.value or b"")
    return size + sum(len(name) + len(value or b"") for name, value in record.headers)


class PageLimits(NamedTuple):
    """Of one page. The record that reaches the second is part of it."""

    records: int
    bytes: int


class ListedRecord(NamedTuple):
    """A record that waits."""

    stated_ms: int
    """Time at which it may be delivered."""
    record: Record
    """As it stands in its waiting batch, under the offset at which it waits."""


class WaitingPage(NamedTuple):
    """A page of waiting records, in the order of their due times."""

    records: list[ListedRecord]
    """Under the offsets at which they wait."""
    next: Waiting | None
    """Start of the next page; None after the last."""


class WaitingList:
    """Waiting records of one partition. Methods raise ApiError if this broker does not lead it."""

    def __init__(
        self, delivery: PartitionDelivery, slices: Slices, is_late: Callable[[], bool] = never
    ) -> None:
        """Once it `is_late`, a search ends with the record it is at."""
        self._delivery = delivery
        self._slices = slices
        self._is_late = is_late
        self._sources = Sources(delivery.partition.log.delays.read_holding)
        """Separate ones: they must not evict the batches of the next delivery."""

    async def page(self, start: Waiting, limits: PageLimits) -> WaitingPage:
        """At most PAGE_ENTRIES at or after `start`."""
        most, size = PAGE_ENTRIES, 0
        followed = self._delivery.followed()
        entries: list[Waiting] = []
        for piece in followed.queue.following(start, most):
            entries = sorted({*entries, *piece})[:most]  # some may have gone into a file meanwhile
            await self._give_way(followed)
        records = []
        for index, entry in enumerate(entries, 1):
            record = await self._record(entry) if self._is_shown(followed, entry) else None
            await self._give_way(followed)
            if record is not None:
                records.append(ListedRecord(entry.stated_ms, record))
                size += size_of(record)
            is_full = len(records) >= limits.records or size >= limits.bytes
            if index == most or (is_full and index < len(entries)):
                return WaitingPage(records, Waiting(entry.due_ms, entry.offset + 1))
        return WaitingPage(records, None)

    async def search(self, start: Waiting, limits: PageLimits, message_id: bytes) -> WaitingPage:
        """Records with this header `message-id`, in at most PAGE_ENTRIES batches.

        Walks the log from the offset in `start`: each batch is opened once. For each record with
        the id it walks all waiting records.
        """
        followed, delays = self._delivery.followed(), self._delivery.partition.log.delays
        first = max(start.offset, followed.needed_from())
        records: list[ListedRecord] = []
        looked, size = 0, 0
        for entry in self._entries_from(delays.first_to_read(first)):
            await self._give_way(followed)
            opened = await self._opened(entry)
            if opened is None:
                continue
            for offset in opened.offsets_from(first) if message_id in opened.body else ():
                found = await self._found(followed, opened, offset, message_id)
                if found is not None:
                    records.append(found)
                    size += size_of(found.record)
                    is_full = len(records) >= limits.records or size >= limits.bytes
                    if is_full or self._is_late():
                        return WaitingPage(records, Waiting(-1, offset + 1))
            looked += 1
            if looked == PAGE_ENTRIES or self._is_late():
                return WaitingPage(records, Waiting(-1, entry.offset + len(opened.starts)))
        return WaitingPage(records, None)

    async def cancel(self, offset: int) -> None:
        """Cancel a record, and wait until that is replicated; ApiError if it does not wait.

        Other than by a record of a client, one of a transaction can be cancelled after the commit.
        """
        delivery, partition = self._delivery, self._delivery.partition
        followed = delivery.followed()
        is_waiting = followed.waits(offset)
        if not is_waiting:
            entry = await self._entry(followed, offset)
            is_waiting = entry is not None and entry > followed.records.delivered
        if not is_waiting or followed.is_gone(offset):
            raise ApiError(ErrorCode.INVALID_RECORD, f"no record waits at offset {offset}")
        delivery.check_room((offset,))
        now_ms = delivery.now_ms()
        sent = build_batch([NewRecord(now_ms, None, None, ((CANCEL, b"%d" % offset),))])
        batch = memoryview(build_cancellation(parse_header(sent), [offset], now_ms))
        info = partition.append_records(batch, ACKS_ALL, FROM_COORDINATOR, now_ms)
        code = await committed(partition, info.last_offset + 1)
        if code is not ErrorCode.NONE:
            raise ApiError(code, "the cancellation may not hold")

    async def _record(self, entry: Waiting) -> Record | None:
        found = self._sources.find(entry.offset)
        if isinstance(found, memoryview):
            found = self._sources.add(await self._delivery.opened(found))
        return None if found is None else found.record(entry.offset)

    def _entries_from(self, offset: int) -> Iterator[DelayEntry]:
        try:
            yield from self._delivery.partition.log.delays.entries_from(offset)
        except DamagedDelaysError as error:
            self._delivery.note_damage(error)
            raise

    async def _opened(self, entry: DelayEntry) -> OpenedBatch | None:
        """The batch of an entry; None if it holds no records."""
        if entry.kind is not DelayKind.WAITING:
            return None
        batch = self._delivery.partition.log.delays.find(entry)
        if batch is None or is_cancellation(batch):
            return None
        return await self._delivery.opened(batch) if is_large(batch) else open_batch(batch)

    async def _found(
        self, followed: FollowedLog, opened: OpenedBatch, offset: int, message_id: bytes
    ) -> ListedRecord | None:
        """The record at an offset if it has the id, and waits."""
        await self._give_way(followed)
        record = opened.record(offset)
        if all(header != (ID_HEADER, message_id) for header in record.headers):
            return None
        entry = await self._entry(followed, offset)
        is_shown = entry is not None and self._is_shown(followed, entry)
        return ListedRecord(entry.stated_ms, record) if entry is not None and is_shown else None

    async def _entry(self, followed: FollowedLog, offset: int) -> Waiting | None:
        for entry in followed.queue.holding(offset):
            if entry is not None:
                return entry
            await self._give_way(followed)
        return None

    def _is_shown(self, followed: FollowedLog, entry: Waiting) -> bool:
        """Return whether it still waits, and is replicated."""
        head = followed.queue.peek()
        if head is None or entry < head:
            return False  # taken out since it was found, and its cancellation forgotten, if any
        if followed.is_gone(entry.offset) or entry <= followed.records.delivered:
            return False
        return entry.offset < self._delivery.partition.readable_end(is_read_committed=False)

    async def _give_way(self, followed: FollowedLog) -> None:
        await self._slices.give_way()
        if self._delivery.followed() is not followed:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "what waits is loaded anew")
