"""Random lives of a compacted log, held against a list of the records that must be in it.

Batches with and without keys, tombstones, several codecs, idempotent and transactional producers
with commits and aborts, rolls, cleanings at any moment with little or much memory for keys, time
that passes, crashes and clean restarts. The model knows each rule of compaction in its plainest
form; after each step the log must hold exactly what the model says, and a read_committed consumer
must see of each key what it would have seen of a log that was never cleaned.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from config.topic import TopicConfig
from protocol.records.batch import iterate_headers
from protocol.records.compression import Codec
from protocol.records.control import ControlType
from protocol.records.record import Record, iterate_records
from storage.log.log_loader import LoadHints, load_log
from storage.log.log_settings import LogSettings
from tests.storage.compaction.compacting import LIMITS, compact, keyed
from tests.storage.produced import (
    NOW_MS,
    Producer,
    append,
    append_marker,
    marker,
    new_log,
    place,
)

if TYPE_CHECKING:
    from storage.log.log import Log

RETENTION_MS = 1000
CONFIG = TopicConfig(
    segment_bytes=1200,
    index_interval_bytes=100,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=RETENTION_MS,
)
UNCHECKED = dataclasses.replace(CONFIG, cleanup_policy=frozenset({"delete"}))
"""Takes records without a key, as a topic does before it is compacted."""

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"", None])
VALUES = st.none() | st.binary(max_size=60)
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4)
PRODUCERS = st.integers(1, 3)


@dataclasses.dataclass
class ModelRecord:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def fields(self) -> tuple[int, int, bytes | None, bytes | None]:
        return self.offset, self.timestamp, self.key, self.value


@dataclasses.dataclass
class ModelBatch:
    """A batch of data, and what has become of it."""

    base_offset: int
    end: int
    records: list[ModelRecord]
    transaction: ModelTransaction | None
    horizon_ms: int | None = None

    @property
    def is_aborted(self) -> bool:
        return self.transaction is not None and self.transaction.outcome is ControlType.ABORT


@dataclasses.dataclass
class ModelTransaction:
    producer_id: int
    first_offset: int
    outcome: ControlType | None = None


@dataclasses.dataclass
class ModelProducer:
    sequence: int = 0
    transaction: ModelTransaction | None = None


class CompactedLogLife(RuleBasedStateMachine):
    log: Log

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.batches: list[ModelBatch] = []
        self.history: list[tuple[ModelRecord, ModelTransaction | None]] = []
        """Every record that was ever appended."""
        self.producers = {producer_id: ModelProducer() for producer_id in range(1, 4)}
        self.now_ms = NOW_MS
        self.end = 0

    @initialize()
    def create(self) -> None:
        self.log = new_log(self.directory, CONFIG)

    @rule(pairs=PAIRS, codec=st.sampled_from(Codec))
    def append(self, pairs: list[tuple[bytes | None, bytes | None]], codec: Codec) -> None:
        self._append(pairs, None, codec)

    @rule(producer_id=PRODUCERS, pairs=PAIRS, is_transactional=st.booleans())
    def produce(
        self,
        producer_id: int,
        pairs: list[tuple[bytes | None, bytes | None]],
        is_transactional: bool,
    ) -> None:
        producer = self.producers[producer_id]
        if producer.transaction is None and is_transactional:
            producer.transaction = ModelTransaction(producer_id, self.end)
        who = Producer(producer_id, 0, producer.sequence, producer.transaction is not None)
        self._append(pairs, who, Codec.NONE)
        producer.sequence += len(pairs)

    @precondition(lambda self: any(one.transaction for one in self.producers.values()))
    @rule(data=st.data(), outcome=st.sampled_from(ControlType))
    def end_transaction(self, data: st.DataObject, outcome: ControlType) -> None:
        open_ones = [key for key, one in self.producers.items() if one.transaction]
        producer_id = data.draw(st.sampled_from(open_ones))
        transaction = self.producers[producer_id].transaction
        assert transaction is not None
        append_marker(self.log, marker(Producer(producer_id), outcome))
        transaction.outcome = outcome
        self.producers[producer_id].transaction = None
        self.end += 1

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(delay_ms=st.integers(0, 2 * RETENTION_MS))
    def wait(self, delay_ms: int) -> None:
        self.now_ms += delay_ms

    @rule(keys=st.sampled_from([4, 6, 1000]))
    def clean(self, keys: int) -> None:
        limits = dataclasses.replace(LIMITS, memory_bytes=24 * keys, load_factor=1.0)
        first_dirty = max(0, self.log.cleaned_offset)
        done = compact(self.log, self.now_ms, limits)
        if done is None:
            return
        ends = [*self.log.segments.base_offsets[1:], self.end]
        rewritten_to = min(end for end in ends if end >= done.end_offset)
        self._clean_model(first_dirty, done.end_offset, rewritten_to)

    @rule(was_clean=st.booleans())
    def restart(self, was_clean: bool) -> None:
        if was_clean:
            self.log.close()
        else:
            self.log.flush()
        log = self.log
        hints = LoadHints(was_clean, log.recovery_point, 0, self.end, log.cleaned_offset)
        self.log, outcome = load_log(place(self.directory), CONFIG, LogSettings(), hints)
        assert outcome.notes == []

    @invariant()
    def the_log_holds_what_the_model_says(self) -> None:
        assert self.log.log_end_offset == self.end
        expected = [record.fields for batch in self.batches for record in batch.records]
        assert [(r.offset, r.timestamp, r.key, r.value) for r in self._read()] == expected

    @invariant()
    def committed_readers_see_the_last_value_of_each_key(self) -> None:
        stable = self.log.last_stable_offset
        wanted: dict[bytes, bytes | None] = {}
        for record, transaction in self.history:
            is_aborted = transaction is not None and transaction.outcome is ControlType.ABORT
            if record.key is not None and record.offset < stable and not is_aborted:
                wanted[record.key] = record.value
        seen: dict[bytes, bytes | None] = {}
        for found in self._read(is_read_committed=True):
            if found.key is not None:
                seen[found.key] = found.value
        assert {key: value for key, value in wanted.items() if value is not None} == {
            key: value for key, value in seen.items() if value is not None
        }

    @invariant()
    def every_offset_can_be_asked_for(self) -> None:
        held = [record.offset for batch in self.batches for record in batch.records]
        for offset in range(0, self.end, 7):
            following = [one for one in held if one >= offset]
            data = self.log.read(offset, 100_000, self.end).tobytes()
            found = [one.offset for one in _records(data) if one.offset >= offset]
            assert not found or found[0] == following[0]

    @invariant()
    def producers_are_known(self) -> None:
        for producer_id, producer in self.producers.items():
            if producer.sequence:
                held = self.log.producers.producers[producer_id]
                assert held.last_sequence == producer.sequence - 1

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def _append(
        self,
        pairs: list[tuple[bytes | None, bytes | None]],
        producer: Producer | None,
        codec: Codec,
    ) -> None:
        self.log.config = UNCHECKED
        info = append(self.log, keyed(pairs, self.now_ms, producer, codec))
        self.log.config = CONFIG
        assert info.first_offset == self.end
        records = [
            ModelRecord(self.end + index, self.now_ms + index, *pair)
            for index, pair in enumerate(pairs)
        ]
        transaction = self.producers[producer.producer_id].transaction if producer else None
        self.history += [(record, transaction) for record in records]
        self.batches.append(ModelBatch(self.end, self.end + len(pairs), records, transaction))
        self.end += len(pairs)

    def _clean_model(self, first_dirty: int, clean_end: int, rewritten_to: int) -> None:
        newest: dict[bytes | None, int] = {}
        for batch in self.batches:
            for record in batch.records:
                if first_dirty <= record.offset < clean_end and not batch.is_aborted:
                    newest[record.key] = record.offset
        for batch in self.batches:
            if batch.base_offset >= rewritten_to:
                continue
            is_past = batch.horizon_ms is not None and batch.horizon_ms <= self.now_ms
            batch.records = [
                record
                for record in batch.records
                if not batch.is_aborted
                and (
                    record.offset >= clean_end
                    or (
                        record.key is not None
                        and record.offset >= newest.get(record.key, -1)
                        and not (record.value is None and is_past)
                    )
                )
            ]
            has_tombstone = any(record.value is None for record in batch.records)
            if has_tombstone and batch.horizon_ms is None:
                batch.horizon_ms = self.now_ms + RETENTION_MS

    def _read(self, *, is_read_committed: bool = False) -> list[Record]:
        """Return all records, read as a consumer does: from where the last batch ended."""
        upper = self.log.last_stable_offset if is_read_committed else self.end
        found: list[Record] = []
        offset = 0
        while offset < upper:
            data = self.log.read(offset, 500, upper).tobytes()
            if not data:
                break
            for position, header in iterate_headers(data):
                batch = data[position : position + header.size_in_bytes]
                if not header.is_control and not (
                    is_read_committed and self._is_skipped(header.producer_id, header.base_offset)
                ):
                    found += list(iterate_records(batch))
                assert header.next_offset > offset
                offset = header.next_offset
        return found

    def _is_skipped(self, producer_id: int, offset: int) -> bool:
        """Return whether consumers skip the offset, within an aborted transaction, to its end."""
        return any(
            aborted.producer_id == producer_id
            and aborted.first_offset <= offset < aborted.last_offset
            for aborted in self.log.aborted_transactions(0, self.end)
        )


def _records(data: bytes) -> list[Record]:
    return [
        record
        for position, header in iterate_headers(data)
        if not header.is_control
        for record in iterate_records(data[position : position + header.size_in_bytes])
    ]


CompactedLogLife.TestCase.settings = settings(
    max_examples=int(os.environ.get("COMPACTION_EXAMPLES", "150")),
    stateful_step_count=40,
    deadline=None,
    print_blob=True,
)
TestCompactedLogLife = CompactedLogLife.TestCase
