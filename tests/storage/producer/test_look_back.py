"""Offsets by time against a model that walks all records, across all changes of the log.

Timestamps in any order, of the producers and of the appends; batches that compaction has thinned
out, gaps between them; rolls, truncation, deleted records with the log start inside a batch, clean
and unclean restarts. Every timestamp is asked for that some record has, and those beside it.
"""

from __future__ import annotations

import dataclasses
import tempfile
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocol.records.batch import parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from storage.segment.timestamp_offset import TimestampOffset
from tests.protocol.records.rewritten import rewritten
from tests.storage.produced import NOW_MS, SMALL, new_log, reopen, reopen_clean

if TYPE_CHECKING:
    from storage.log.log import Log

CREATE_TIME = dataclasses.replace(
    SMALL, segment_bytes=900, index_interval_bytes=100, message_timestamp_after_max_ms=10**9
)
APPEND_TIME = dataclasses.replace(CREATE_TIME, message_timestamp_type="LogAppendTime")
HINTS = {"high_watermark": 10**6}

deltas = st.lists(st.integers(-40, 40), min_size=1, max_size=6)
steps = st.one_of(
    st.tuples(st.just("append"), deltas, st.sampled_from([Codec.NONE, Codec.LZ4])),
    st.tuples(st.just("append"), deltas, st.just(Codec.NONE)),
    st.tuples(st.just("stamp"), deltas, st.integers(-40, 40)),
    st.tuples(st.just("compacted"), deltas, st.tuples(st.integers(0, 63), st.integers(0, 9))),
    st.tuples(st.just("roll")),
    st.tuples(st.just("truncate"), st.integers(0, 12)),
    st.tuples(st.just("delete"), st.integers(0, 8)),
    st.tuples(st.just("close")),
    st.tuples(st.just("crash")),
)


class Life:
    """A log, and all the records that it holds."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.log: Log = new_log(directory, CREATE_TIME)
        self.records: list[TimestampOffset] = []
        self.bases: list[int] = []
        self.epoch = 0

    def append(self, times: list[int], codec: Codec) -> None:
        batch = build_batch([NewRecord(NOW_MS + one, b"k", b"v" * 9) for one in times], codec=codec)
        self._appended(batch, NOW_MS)

    def stamp(self, times: list[int], now: int) -> None:
        self.log.config = APPEND_TIME
        self._appended(build_batch([NewRecord(one, b"k", b"v") for one in times]), NOW_MS + now)
        self.log.config = CREATE_TIME

    def compacted(self, times: list[int], thinning: tuple[int, int]) -> None:
        """Append what compaction left of a batch, after a gap."""
        kept, gap = thinning
        full = build_batch(
            [NewRecord(NOW_MS + one, b"k", b"v") for one in times],
            base_offset=self.log.log_end_offset + gap,
            leader_epoch=self.epoch,
        )
        batch = rewritten(full, [index for index in range(len(times)) if kept >> index & 1])
        self.log.append_as_follower(batch, NOW_MS)
        self._note(batch)

    def roll(self) -> None:
        self.log.roll(NOW_MS)
        self.epoch += 1

    def truncate(self, count: int) -> None:
        """Drop the last batches whole, as followers do: epochs end between batches."""
        start = self.log.log_start_offset
        bases = [one for one in self.bases if start <= one < self.log.log_end_offset]
        if count and bases:
            self.log.truncate_to(bases[-min(count, len(bases))])
            self.bases = [one for one in self.bases if one < self.log.log_end_offset]
            self.records = [one for one in self.records if one.offset < self.log.log_end_offset]

    def delete(self, count: int) -> None:
        self.log.advance_high_watermark(self.log.log_end_offset)
        start = min(self.log.log_start_offset + count, self.log.high_watermark)
        self.log.advance_log_start_offset(start)
        for path in self.log.delete_expired(NOW_MS):
            self.log.directory.disk.filesystem.remove(path)

    def close(self) -> None:
        start = self.log.log_start_offset
        self.log.close()
        self.log = reopen_clean(self.directory, CREATE_TIME, log_start_offset=start, **HINTS)

    def crash(self) -> None:
        start, point = self.log.log_start_offset, self.log.recovery_point
        hints = {"log_start_offset": start, "recovery_point": point, **HINTS}
        self.log, _ = reopen(self.directory, CREATE_TIME, **hints)

    def check(self) -> None:
        start = self.log.log_start_offset
        visible = [one for one in self.records if one.offset >= start]
        asked = {one.timestamp + delta for one in self.records for delta in (-1, 0, 1)}
        for timestamp in sorted(asked):
            first = next((one for one in visible if one.timestamp >= timestamp), None)
            assert self.log.offset_for_timestamp(timestamp) == first, timestamp - NOW_MS
        latest = max((one.timestamp for one in visible), default=None)
        first = next((one for one in visible if one.timestamp == latest), None)
        assert self.log.offset_of_max_timestamp() == first

    def _appended(self, batch: bytearray, now_ms: int) -> None:
        info = self.log.append_as_leader(memoryview(batch), self.epoch, now_ms)
        assert parse_header(batch).base_offset == info.first_offset
        self._note(batch)

    def _note(self, batch: bytearray) -> None:
        self.bases.append(parse_header(batch).base_offset)
        self.records += [
            TimestampOffset(one.timestamp, one.offset, self.epoch) for one in iterate_records(batch)
        ]


@given(st.lists(steps, min_size=1, max_size=40))
@example(
    [
        ("append", [0], Codec.NONE),
        ("roll",),
        ("append", [0], Codec.NONE),
        ("compacted", [1], (0, 0)),
    ]
)
@settings(deadline=None, max_examples=150)
def test_offsets_by_time_are_those_of_a_walk_over_all_records(
    life: list[tuple[object, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        model = Life(directory)
        for name, *arguments in life:
            getattr(model, str(name))(*arguments)
            if name in {"truncate", "delete", "close", "crash"}:
                model.check()
        model.check()
