"""Random transactions against a model of what a read_committed consumer must see.

The consumer is Java's: it takes the aborted transactions in the order of their first offsets, and
skips a producer's transactional batches from there to its abort marker. After each step, and after
crashes that lose what was not flushed of the transaction indexes, it must see the records of
committed transactions, all and only those, wherever it starts to read.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from config.topic import TopicConfig
from protocol.records.batch import iterate_headers
from protocol.records.control import ControlType, parse_marker
from storage.append.append_source import FROM_COORDINATOR
from storage.segment.aborted_index import ENTRY
from tests.storage.produced import NOW_MS, Producer, batch, marker, new_log, reopen, reopen_clean

if TYPE_CHECKING:
    from storage.log.log import Log

CONFIG = TopicConfig(segment_bytes=600, index_interval_bytes=100, segment_index_bytes=1200)
PRODUCERS = st.integers(0, 3)


@dataclass(frozen=True)
class Appended:
    """A batch as the model knows it."""

    first: int
    last: int
    producer_id: int
    is_transactional: bool
    ends: bool | None = None
    """True for a marker that commits, False for one that aborts."""


class TransactionsMachine(RuleBasedStateMachine):
    """A log, its crashes, and the model."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory()
        self.directory = Path(self._temporary.name)
        self.log: Log = new_log(self.directory, CONFIG)
        self.appended: list[Appended] = []
        self.sequences = dict.fromkeys(range(4), 0)
        self.is_flushed_to = 0

    def teardown(self) -> None:
        self.log.release()
        self._temporary.cleanup()

    @rule(producer_id=PRODUCERS, count=st.integers(1, 3))
    def write(self, producer_id: int, count: int) -> None:
        """A batch of an open transaction, which it opens if there is none."""
        who = Producer(producer_id, 0, self.sequences[producer_id], is_transactional=True)
        info = self.log.append_as_leader(batch(count, producer=who), 0, NOW_MS)
        self.sequences[producer_id] += count
        self.appended.append(Appended(info.first_offset, info.last_offset, producer_id, True))

    @rule(count=st.integers(1, 3))
    def write_outside(self, count: int) -> None:
        info = self.log.append_as_leader(batch(count), 0, NOW_MS)
        self.appended.append(Appended(info.first_offset, info.last_offset, -1, False))

    @rule(producer_id=PRODUCERS, commits=st.booleans())
    def end(self, producer_id: int, commits: bool) -> None:
        """A marker, also where no transaction is open."""
        kind = ControlType.COMMIT if commits else ControlType.ABORT
        data = marker(Producer(producer_id), kind)
        info = self.log.append_as_leader(data, 0, NOW_MS, FROM_COORDINATOR)
        offset = info.first_offset
        self.appended.append(Appended(offset, offset, producer_id, True, commits))

    @rule(lag=st.integers(0, 4))
    def replicate(self, lag: int) -> None:
        self.log.advance_high_watermark(self.log.log_end_offset - lag)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.is_flushed_to = self.log.log_end_offset

    @rule()
    def restart(self) -> None:
        self.replicate(0)
        self.log.close()
        end = self.is_flushed_to = self.log.log_end_offset
        self.log = reopen_clean(self.directory, CONFIG, high_watermark=end)

    @rule(entries_lost=st.integers(0, 3), bytes_lost=st.integers(0, 40))
    def crash(self, entries_lost: int, bytes_lost: int) -> None:
        """The machine stops: of the transaction indexes, only what was flushed is sure to stay."""
        self.replicate(0)
        self.log.flush()  # of the index entries below none is flushed
        self.log.release()
        lost = entries_lost * ENTRY.size + bytes_lost
        for path in sorted(self.directory.rglob("*.txnindex"), reverse=True):
            data = path.read_bytes()
            sure = sum(
                ENTRY.unpack_from(data, at)[3] < self.is_flushed_to
                for at in range(0, len(data), ENTRY.size)
            )
            kept = max(sure * ENTRY.size, len(data) - lost)
            path.write_bytes(data[:kept])
        self.log, _ = reopen(
            self.directory,
            CONFIG,
            recovery_point=self.is_flushed_to,
            high_watermark=self.log.log_end_offset,
        )

    @precondition(lambda self: bool(self.appended))
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """A follower drops what its new leader does not have."""
        cut = data.draw(st.sampled_from(self.appended)).first
        self.replicate(0)  # what is complete above the high watermark is not known afterwards
        self.log.truncate_to(cut)
        self.appended = [each for each in self.appended if each.first < cut]
        self.is_flushed_to = min(self.is_flushed_to, cut)
        self.sequences = {
            producer_id: sum(
                each.last - each.first + 1
                for each in self.appended
                if each.producer_id == producer_id and each.ends is None
            )
            for producer_id in self.sequences
        }

    @invariant()
    def last_stable_offset_is_right(self) -> None:
        unstable = [
            first for first, end, _ in self.transactions() if end is None or end >= self.watermark
        ]
        assert self.log.last_stable_offset == min([*unstable, self.watermark])

    @invariant()
    def consumers_see_committed_records_only(self) -> None:
        stable = self.log.last_stable_offset
        for start in {0, stable // 2, stable - 1}:
            for max_bytes in (250, 10_000):
                if 0 <= start < stable:
                    self.check_read(start, max_bytes)

    @property
    def watermark(self) -> int:
        return self.log.high_watermark

    def check_read(self, start: int, max_bytes: int) -> None:
        piece = self.log.read(start, max_bytes, self.log.last_stable_offset)
        coming = sorted(
            (each.first_offset, each.producer_id)
            for each in self.log.reader.aborted_in(piece, start)
        )
        data = piece.tobytes()
        aborted: set[int] = set()
        seen: list[int] = []
        end = start
        for position, header in iterate_headers(data):
            end = header.next_offset
            while coming and coming[0][0] <= header.last_offset:
                aborted.add(coming.pop(0)[1])
            if header.is_control:
                ended = parse_marker(data[position : position + header.size_in_bytes])
                if ended is not None and ended.type is ControlType.ABORT:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                seen += range(max(start, header.base_offset), header.next_offset)
        # A batch that is cut off counts as returned: its header is there.
        assert all(first <= end for first, _ in coming), "transactions of what is not there"
        assert seen == [offset for offset in self.visible() if start <= offset < end]

    def visible(self) -> list[int]:
        """Offsets of the records that consumers must see, as far as transactions have ended."""
        committed = {
            (producer_id, first): commits for first, end, commits, producer_id in self.named()
        }
        began: dict[int, int] = {}
        found: list[int] = []
        for each in self.appended:
            if each.ends is not None:
                began.pop(each.producer_id, None)
                continue
            if each.is_transactional:
                first = began.setdefault(each.producer_id, each.first)
                if not committed[each.producer_id, first]:
                    continue
            found += range(each.first, each.last + 1)
        return found

    def transactions(self) -> list[tuple[int, int | None, bool | None]]:
        return [(first, end, commits) for first, end, commits, _ in self.named()]

    def named(self) -> list[tuple[int, int | None, bool | None, int]]:
        """First offset, offset of the marker, whether it commits, and producer."""
        began: dict[int, int] = {}
        found: list[tuple[int, int | None, bool | None, int]] = []
        for each in self.appended:
            if each.ends is None:
                if each.is_transactional:
                    began.setdefault(each.producer_id, each.first)
            elif each.producer_id in began:
                first = began.pop(each.producer_id)
                found.append((first, each.first, each.ends, each.producer_id))
        found += [(first, None, None, producer_id) for producer_id, first in began.items()]
        return found


TestTransactions = TransactionsMachine.TestCase
TestTransactions.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
