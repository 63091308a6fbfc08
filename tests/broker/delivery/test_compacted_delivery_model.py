"""Drawn delays, deaths and leader changes in a topic that is compacted as well.

Each replica cleans its log at any moment, by what that log holds. A witness gets every batch before
any cleaning can, and cleans nothing: what leaders with compacted logs deliver is held against it,
and so is the last value of each key.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from protocol.records.batch import DELAY_BIT, parse_header
from protocol.records.builder import NewRecord
from protocol.records.control import ControlType, parse_marker
from protocol.records.record import Record, iterate_records
from storage.compaction import delay_filter, log_rewrite
from storage.compaction.choice import assess, make_job
from storage.compaction.cleaned_segment import CleanedSegment
from storage.compaction.delay_bounds import find_bounds
from storage.compaction.job import CleanedGroup
from storage.compaction.swap import LogUnderCleaning, discard_cleaned
from storage.delays.delay_index import kind_of
from tests.broker.delivery.judged_log import check_complete, check_order, judge
from tests.broker.delivery.replicated import DELAYING, Replica
from tests.broker.delivery.test_delivery_model import DELAYS, LONGEST_MS, Scenario
from tests.storage.compaction.compacting import LIMITS, SEED
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.virtual_time import run_in_virtual_time
from tests.support.loop_watch import as_another_process

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from storage.log.log import Log

SEEDS = range(24)
KEYS = b"a", b"b", b"c", b"d"
DELETE_RETENTION_MS = 4000
COMPACTING = dataclasses.replace(
    DELAYING,
    segment_bytes=1800,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=DELETE_RETENTION_MS,
)


class CompactedScenario(Scenario):
    """One seed."""

    config = COMPACTING

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.witness = Replica(9, self.config)
        self.cleanings = 0
        self.bytes_dropped = 0

    async def run(self) -> None:
        self.witness.begin_life()
        await super().run()
        for replica in self.replicas:
            replica.fetch_from(self.leader, 1 << 20)
        self.committed = self.leader.log.log_end_offset
        await self.clean_all()

    def steps(self) -> dict[Callable[[], Coroutine[Any, Any, object]], int]:
        return {**super().steps(), self.clean: 6, self.retain: 0}

    def whole_log(self) -> Log:
        self.witness.fetch_from(self.leader, 1 << 20)
        return self.witness.log

    async def clean(self) -> None:
        self.whole_log()
        self.clean_log(self.random.choice(self.replicas).log)

    async def clean_all(self) -> None:
        for replica in self.replicas:
            replica.log.flush()
            self.clean_log(replica.log)
            check_index(replica.log)
            await asyncio.sleep(0)  # noqa: TID251 - no broker's loop does so much at once

    def clean_log(self, log: Log) -> None:
        if self.random.random() < 0.8:
            log.flush()
        now_ms = NOW_MS + self.leader.clock.monotonic_ms()
        chosen = assess(log, now_ms)
        if chosen is None:
            return
        # The replicas' high watermarks go beyond what is committed, and may be cut.
        bases = [base for base in log.segments.base_offsets if base <= self.committed]
        end = min(chosen.end_offset, max(bases, default=0))
        if end <= chosen.first_dirty_offset:
            return
        discard_cleaned(log)
        memory = self.random.choice([24 * 4, LIMITS.memory_bytes])
        limits = dataclasses.replace(LIMITS, memory_bytes=memory, load_factor=1.0)
        job = make_job(dataclasses.replace(chosen, end_offset=end), limits, now_ms, SEED)
        target = LogUnderCleaning(log)
        filesystem = log.directory.disk.filesystem
        before = sum(segment.size for segment in log.segments)
        reports = log_rewrite.clean(job, filesystem, lambda _count: None)
        for report in reports_of_another_process(reports):
            if isinstance(report, CleanedGroup):
                removals = target.swap_in(report)
                assert removals is not None
                for path in removals:
                    filesystem.remove(path)
            else:
                log.offsets.note_cleaned(report.end_offset)
        self.cleanings += 1
        self.bytes_dropped += before - sum(segment.size for segment in log.segments)

    async def change_leader(self) -> None:
        await super().change_leader()
        self.witness.log.truncate_to(self.leader.log.log_end_offset)

    async def kill_follower(self) -> None:
        follower = self.random.choice([one for one in self.replicas if one is not self.leader])
        if self.random.random() < 0.5:
            follower.die(min(follower.log.recovery_point, follower.log.log_end_offset), self.random)
            self.truncate_where_it_differs(follower.log)
        else:
            follower.die(self.random.randint(0, follower.log.log_end_offset))

    def truncate_where_it_differs(self, log: Log) -> None:
        """Power that fails may bring back what was cut off: it has another leader's epoch."""
        kept = {(one.base_offset, one.partition_leader_epoch) for one in headers(self.witness.log)}
        for header in headers(log):
            if (header.base_offset, header.partition_leader_epoch) not in kept:
                log.truncate_to(header.base_offset)
                return

    def check(self) -> None:
        found = judge(self.whole_log())
        check_order(found)
        check_complete(found)
        assert [replica.failures for replica in self.replicas] == [[], [], []]
        expected = latest(self.witness.log)
        for replica in self.replicas:
            assert latest(replica.log) == expected, replica.number
        assert self.cleanings

    def _drawn_record(self) -> NewRecord:
        self.values += 1
        value = b"%d-" % self.values + bytes(self.random.choice([0, 10, 300]))
        now_ms = self.leader.clock.now_ms()
        headers: tuple[tuple[str, bytes], ...] = ()
        if self.random.random() < 0.5:
            headers = (("deliver-after", self.random.choice(DELAYS)),)
        elif self.random.random() < 0.3:
            at_ms = now_ms + self.random.randint(-LONGEST_MS, LONGEST_MS)
            headers = (("deliver-at", b"%d" % at_ms),)
        kept = None if self.random.random() < 0.2 else value
        return NewRecord(now_ms - 3, self.random.choice(KEYS), kept, headers)

    def note(self, records: list[NewRecord], first_offset: int) -> None:
        """Note only that they can be cancelled: the log is compared with the witness."""
        for index in range(len(records)):
            self.sent[first_offset + index] = b""


def reports_of_another_process(reports: Iterator[Any]) -> Iterator[Any]:
    """Produce the reports as the cleaner's process does."""
    while True:
        with as_another_process():
            report = next(reports, None)
        if report is None:
            return
        yield report


def headers(log: Log) -> list[Any]:
    return [parse_header(one) for one in log.read_batches(log.log_start_offset, log.log_end_offset)]


def latest(log: Log) -> dict[bytes | None, bytes]:
    """The last value of each key, as a consumer of what is committed ends up with."""
    values: dict[bytes | None, bytes | None] = {}
    open_ones: dict[int, list[Record]] = {}
    found: list[Record] = []
    for batch in log.read_batches(log.log_start_offset, log.log_end_offset):
        header = parse_header(batch)
        if header.ends_transaction:
            marker = parse_marker(batch)
            ended = open_ones.pop(header.producer_id, [])
            if marker is not None and marker.type is ControlType.COMMIT:
                found += ended
        elif not header.is_control:
            is_open = header.is_transactional
            target = open_ones.setdefault(header.producer_id, []) if is_open else found
            target += iterate_records(batch)
    for record in sorted(found):
        values[record.key] = record.value
    return {key: value for key, value in values.items() if value is not None}


def check_index(log: Log) -> None:
    """The delay indexes of cleaned segments say what the headers say."""
    for entry in log.delays.entries_from(0):
        header = parse_header(log.delays.read(entry))
        assert (header.base_offset, kind_of(header)) == (entry.offset, entry.kind)
        assert header.max_timestamp == entry.timestamp
    listed = [entry.offset for entry in log.delays.entries_from(0)]
    assert listed == [one.base_offset for one in headers(log) if one.attributes & DELAY_BIT]


def run(seed: int) -> CompactedScenario:
    scenario = CompactedScenario(seed)
    run_in_virtual_time(scenario.run())
    scenario.check()
    return scenario


@pytest.mark.parametrize("seed", SEEDS)
def test_compaction_keeps_undelivered_records_and_the_last_value_of_each_key(seed: int) -> None:
    run(seed)


def drop_what_waits(patch: pytest.MonkeyPatch) -> None:
    """Take all records before the last delivery for delivered."""

    def too_far(job: Any, filesystem: Any) -> Any:
        bounds = find_bounds(job, filesystem)
        return bounds._replace(waiting_from=bounds.waiting_from and job.end_offset)

    patch.setattr(log_rewrite, "find_bounds", too_far)


def drop_points(patch: pytest.MonkeyPatch) -> None:
    """Delivered batches lose point and time with their records."""
    patch.setattr(delay_filter, "_remainder", lambda _batch, stays: stays)


def drop_times(patch: pytest.MonkeyPatch) -> None:
    """Drop the due times of delivered batches, except the last one."""

    def too_late(job: Any, filesystem: Any) -> Any:
        return find_bounds(job, filesystem)._replace(delivered_from=job.end_offset)

    patch.setattr(log_rewrite, "find_bounds", too_late)


def forget_the_index(patch: pytest.MonkeyPatch) -> None:
    """A cleaned segment seems to have nothing to do with delays."""
    finish = CleanedSegment.finish
    patch.setattr(CleanedSegment, "finish", lambda *parts: (*finish(*parts)[:3], 0))


@pytest.mark.interpreted
@pytest.mark.parametrize("plant", [drop_what_waits, drop_points, drop_times, forget_the_index])
def test_the_model_finds_planted_defects(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    for seed in SEEDS:
        try:
            run(seed)
        except Exception:  # noqa: BLE001 - whatever it is, it is found
            return
    raise AssertionError("not found by any seed")
