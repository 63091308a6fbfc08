"""The log of a thousand groups that commit for a month stays as small as what they need."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from config.topic import TopicConfig
from protocol.messages.consumer_offsets_records import OffsetCommitKey, OffsetCommitValue
from protocol.records.builder import NewRecord, build_batch
from storage.append.append_source import FROM_COORDINATOR
from storage.compaction.choice import assess
from tests.storage.compaction.compacting import compact, records_in
from tests.storage.produced import NOW_MS, new_log

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

GROUPS = 1000
DAYS = 30
COMMITS_A_DAY = 12
HOUR_MS = 3_600_000
BATCH_GROUPS = 50
SEGMENT_BYTES = 1 << 20
"""A hundredth of `offsets.topic.segment.bytes`, for a month of few commits."""

CONFIG = TopicConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=SEGMENT_BYTES)
KEYS = [
    OffsetCommitKey(group=f"group-{number}", topic="orders", partition=0).encode_versioned(0)
    for number in range(GROUPS)
]


def commit_all(log: Log, offset: int, now_ms: int) -> None:
    """Append a commit of each group, some dozens in a batch."""
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=now_ms)
    encoded = value.encode_versioned(3)
    for start in range(0, GROUPS, BATCH_GROUPS):
        records = [NewRecord(now_ms, key, encoded) for key in KEYS[start : start + BATCH_GROUPS]]
        log.append_as_leader(memoryview(build_batch(records)), 0, now_ms, FROM_COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)


def test_a_month_of_commits_by_a_thousand_groups_stays_small(tmp_path: Path) -> None:
    log = new_log(tmp_path, dataclasses.replace(CONFIG))
    appended = largest = 0
    for commit in range(DAYS * COMMITS_A_DAY):
        now_ms = NOW_MS + commit * HOUR_MS * 24 // COMMITS_A_DAY
        before = log.size_in_bytes
        commit_all(log, commit, now_ms)
        appended += log.size_in_bytes - before
        largest = max(largest, log.size_in_bytes)
        found = assess(log, now_ms)
        if found and found.is_worth_it:
            compact(log, now_ms)

    assert appended > 15 * SEGMENT_BYTES
    assert largest < 4 * SEGMENT_BYTES
    assert log.size_in_bytes < 3 * SEGMENT_BYTES
    newest = {key: value for _, key, value in records_in(log)}
    assert len(newest) == GROUPS
    held = [OffsetCommitValue.decode_versioned(value or b"")[1] for value in newest.values()]
    assert {value.offset for value in held} == {DAYS * COMMITS_A_DAY - 1}
