"""Random lives of a log, held against a list of the records that must be in it.

Appends, rolls, flushes, truncations, clean restarts, and crashes that cut the newest file at any
byte past the recovery point; after each step, reads must return what the list says. A crash may
lose what was not flushed, but only from the end, and only whole batches.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from storage.log.log_loader import LoadHints, load_log
from storage.log.log_settings import LogSettings
from storage.segment.timestamp_offset import TimestampOffset
from tests.storage.produced import NOW_MS, SMALL, Producer, append, batch, new_log, place

if TYPE_CHECKING:
    from storage.log.log import Log

CONFIG = dataclasses.replace(SMALL, segment_bytes=600, index_interval_bytes=100)


@dataclasses.dataclass(frozen=True)
class Expected:
    """A batch of the model."""

    offset: int
    count: int
    timestamp: int
    epoch: int
    sequence: int

    @property
    def end(self) -> int:
        return self.offset + self.count


class LogLife(RuleBasedStateMachine):
    log: Log

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.batches: list[Expected] = []
        self.end = 0
        self.start = 0
        self.epoch = 0
        self.sequence = 0

    @initialize()
    def create(self) -> None:
        self.log = new_log(self.directory, CONFIG)

    @rule(
        count=st.integers(1, 4),
        size=st.integers(0, 60),
        delay=st.integers(-50, 100),
        new_epoch=st.booleans(),
    )
    def append(self, count: int, size: int, delay: int, new_epoch: bool) -> None:
        self.epoch += new_epoch
        timestamp = NOW_MS + self.end + delay
        data = batch(count, timestamp, Producer(7, 0, self.sequence), b"x" * size)
        info = append(self.log, data, self.epoch)
        assert (info.first_offset, info.last_offset) == (self.end, self.end + count - 1)
        self.batches.append(Expected(self.end, count, timestamp, self.epoch, self.sequence))
        self.end += count
        self.sequence += count

    @precondition(lambda self: self.batches and self.batches[-1].end == self.end > self.start)
    @rule()
    def repeat_the_last_batch(self) -> None:
        last = self.batches[-1]
        data = batch(last.count, last.timestamp, Producer(7, 0, last.sequence))
        info = append(self.log, data, self.epoch)
        assert info.is_duplicate
        assert info.first_offset == last.offset

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        ends = [one.offset for one in self.batches if one.offset >= self.start]
        self._cut(data.draw(st.sampled_from([*ends, self.end])))
        self.log.truncate_to(self.end)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start_offset(self.start)
        for path in self.log.delete_expired(NOW_MS):
            self.log.directory.disk.filesystem.remove(path)

    @rule()
    def restart_cleanly(self) -> None:
        self.log.close()
        self._load(was_clean=True)
        assert self.log.log_end_offset == self.end

    @rule(data=st.data(), garbage=st.binary(max_size=100))
    def crash(self, data: st.DataObject, garbage: bytes) -> None:
        """The newest file loses its end, perhaps with something else in its place."""
        active = self.log.segments.active
        safe = self._position_of(self.log.recovery_point)
        size = data.draw(st.integers(safe, active.size))
        file = self.log.segments.active.file
        file.truncate(size)
        file.write_at(size, garbage)
        kept = [one for one in self.batches if one.end <= self.log.recovery_point]
        before = self.end
        self._load(was_clean=False)
        assert self.log.log_end_offset <= before
        if self.log.log_end_offset == self.log.log_start_offset:
            # What is left ends before the log start offset, so the log begins anew there.
            self._cut(-1)
            self.end = self.log.log_end_offset
            return
        whole = [one for one in self.batches if one.end <= self.log.log_end_offset]
        assert whole[: len(kept)] == kept
        assert not whole or whole[-1].end == self.log.log_end_offset
        self._cut(self.log.log_end_offset)

    @invariant()
    def everything_is_readable(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        expected = [one for one in self.batches if one.end > self.start]
        offset = self.start
        found: list[tuple[int, int, int, int]] = []
        while offset < self.end:
            region = log.read(offset, 300, self.end).tobytes()
            for position, header in iterate_headers(region):
                records = list(iterate_records(region[position:]))
                assert [record.offset for record in records] == list(
                    range(header.base_offset, header.next_offset)
                )
                epoch = header.partition_leader_epoch
                found.append((header.base_offset, len(records), records[0].timestamp, epoch))
                offset = header.next_offset
        assert found == [(one.offset, one.count, one.timestamp, one.epoch) for one in expected]

    @invariant()
    def times_are_found(self) -> None:
        records = [
            TimestampOffset(one.timestamp + index, one.offset + index, one.epoch)
            for one in self.batches
            for index in range(one.count)
            if one.offset + index >= self.start
        ]
        if records:
            target = records[len(records) // 2].timestamp
            expected = next(record for record in records if record.timestamp >= target)
            assert self.log.offset_for_timestamp(target) == expected
        for one in self.batches:
            if one.offset >= self.start:
                assert self.log.epochs.epoch_at(one.offset) == one.epoch

    @invariant()
    def the_producer_is_known(self) -> None:
        if self.batches and self.batches[-1].end == self.end > self.start:
            assert self.log.producers.producers[7].last_sequence == self.sequence - 1

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def _load(self, *, was_clean: bool) -> None:
        hints = LoadHints(was_clean, self.log.recovery_point, self.start, self.end)
        self.log, _ = load_log(place(self.directory), CONFIG, LogSettings(), hints)

    def _cut(self, end: int) -> None:
        self.batches = [one for one in self.batches if one.end <= end]
        self.end = end
        last = self.batches[-1] if self.batches else None
        self.sequence = last.sequence + last.count if last else 0
        self.epoch = max(self.epoch, last.epoch if last else 0)

    def _position_of(self, offset: int) -> int:
        """First byte of the active segment that may be lost."""
        found = self.log.segments.active.locate(offset)
        return found.position if found is not None else self.log.segments.active.size


LogLife.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    print_blob=True,
)
TestLogLife = LogLife.TestCase
