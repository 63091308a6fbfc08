"""Waiting batches of open transactions, until the log has their end.

The delay numbers of at most `most` records are kept, of all transactions together; later ones are
read again from the log when their transaction commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.delays.waiting_batch import CANCELLED, parse_waiting
from protocol.records.batch import TRANSACTIONAL_BIT, parse_header
from storage.delays.delay_index import DelayKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.delays.delay_index import DelayEntry
    from storage.delays.log_delays import LogDelays


class DecidedBatch(NamedTuple):
    """A waiting batch, or one that cancels, of a transaction that is committed."""

    base_offset: int
    numbers: tuple[int, ...]
    """As in `protocol.delays.waiting_batch`."""
    is_cancellation: bool


class _Opened:
    """One transaction."""

    __slots__ = ("cancellations", "first_offset", "kept", "read_from")

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.cancellations = 0
        self.kept: list[DecidedBatch] = []
        self.read_from: int | None = None
        """Batches at or after this offset are not kept; None when all are."""


class OpenTransactions:
    """Open transactions of one partition, by producer id."""

    def __init__(self, most: int) -> None:
        """Keeps the delay numbers of at most `most` records."""
        self._most = most
        self._kept = 0
        self._opened: dict[int, _Opened] = {}
        self.cancellations = 0
        """Records that are cancelled if all transactions commit."""

    @property
    def first_offset(self) -> int | None:
        """Of the first batch of all of them; None without any."""
        return min((one.first_offset for one in self._opened.values()), default=None)

    @property
    def kept(self) -> int:
        """Records whose numbers are in memory."""
        return self._kept

    def holds(self, producer_id: int, base_offset: int) -> bool:
        """Return whether a transactional batch of this producer belongs to an open transaction."""
        opened = self._opened.get(producer_id)
        return opened is not None and base_offset >= opened.first_offset

    def add(self, producer_id: int, batch: DecidedBatch) -> None:
        """Add a batch, in the order of the log."""
        opened = self._opened.setdefault(producer_id, _Opened(batch.base_offset))
        if batch.is_cancellation:
            opened.cancellations += len(batch.numbers)
            self.cancellations += len(batch.numbers)
        if opened.read_from is not None:
            return
        if self._kept + len(batch.numbers) > self._most:
            opened.read_from = batch.base_offset
            return
        self._kept += len(batch.numbers)
        opened.kept.append(batch)

    def abort(self, producer_id: int) -> list[tuple[int, int]]:
        """The transaction of a producer has ended, and nothing of it counts.

        Returns first and end offsets of its batches, of those at least that are in memory.
        """
        opened = self._close(producer_id)
        batches = () if opened is None else opened.kept
        return [(one.base_offset, one.base_offset + len(one.numbers)) for one in batches]

    def commit(
        self, producer_id: int, marker_offset: int, delays: LogDelays
    ) -> Iterator[DecidedBatch | None]:
        """Its batches, in the order of the log; None is a step that found nothing.

        The transaction counts as open until all are read: retention has to keep them.
        """
        opened = self._opened.get(producer_id)
        if opened is None:
            return
        yield from opened.kept
        if opened.read_from is not None:
            for entry in delays.entries_from(opened.read_from):
                if entry.offset >= marker_offset:
                    break
                yield _read(entry, producer_id, delays)
        self._close(producer_id)

    def _close(self, producer_id: int) -> _Opened | None:
        opened = self._opened.pop(producer_id, None)
        if opened is not None:
            self._kept -= sum(len(one.numbers) for one in opened.kept)
            self.cancellations -= opened.cancellations
        return opened


def _read(entry: DelayEntry, producer_id: int, delays: LogDelays) -> DecidedBatch | None:
    """The batch of an entry if it is of this producer's transaction."""
    if entry.kind is not DelayKind.WAITING:
        delays.check(entry)
        return None
    batch = delays.read(entry)
    header = parse_header(batch)
    if header.producer_id != producer_id or not header.attributes & TRANSACTIONAL_BIT:
        return None
    waiting = parse_waiting(batch)
    return DecidedBatch(entry.offset, waiting.numbers, waiting.type == CANCELLED)
