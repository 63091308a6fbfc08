"""Clean a log within the test's own process, by the same steps as the broker takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.batch import iterate_headers
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from storage.compaction.choice import assess, make_job
from storage.compaction.job import (
    CleanedGroup,
    CleanerLimits,
    CleaningDone,
    CleaningJob,
    decode_report,
    encode_report,
)
from storage.compaction.log_rewrite import clean
from storage.compaction.swap import LogUnderCleaning, discard_cleaned
from tests.storage.produced import NOW_MS, Producer, append

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from storage.append.append_info import AppendInfo
    from storage.log.log import Log

LIMITS = CleanerLimits(1 << 20, 0.9, 4096, 1e12)
SEED = bytes(range(32))
DAY_MS = 86_400_000


def compact(
    log: Log,
    now_ms: int = NOW_MS,
    limits: CleanerLimits = LIMITS,
    after_swap: Callable[[], None] = lambda: None,
) -> CleaningDone | None:
    """Clean what may be cleaned, however little it is; None when there is nothing."""
    chosen = assess(log, now_ms)
    if chosen is None or chosen.end_offset <= chosen.first_dirty_offset:
        return None
    discard_cleaned(log)
    job = CleaningJob.decode(make_job(chosen, limits, now_ms, SEED).encode())
    target = LogUnderCleaning(log)
    filesystem = log.directory.disk.filesystem
    for report in clean(job, filesystem, lambda _count: None):
        again = decode_report(encode_report(report))
        assert again == report
        if isinstance(again, CleanedGroup):
            removals = target.swap_in(again)
            assert removals is not None
            after_swap()
            for path in removals:
                filesystem.remove(path)
        else:
            assert isinstance(again, CleaningDone)
            log.offsets.note_cleaned(again.end_offset)
            return again
    raise AssertionError("the cleaning did not end")


def keyed(
    pairs: Iterable[tuple[bytes | None, bytes | None]],
    timestamp: int = NOW_MS,
    producer: Producer | None = None,
    codec: Codec = Codec.NONE,
) -> memoryview:
    """A batch of keys and values."""
    who = producer or Producer(-1, -1, -1)
    return memoryview(
        build_batch(
            [NewRecord(timestamp + index, *pair) for index, pair in enumerate(pairs)],
            codec=codec,
            producer_id=who.producer_id,
            producer_epoch=who.epoch,
            base_sequence=who.sequence,
            is_transactional=who.is_transactional,
        )
    )


def put(log: Log, **values: str | None) -> AppendInfo:
    """Append one batch with these keys and values."""
    pairs = [
        (key.encode(), None if value is None else value.encode()) for key, value in values.items()
    ]
    return append(log, keyed(pairs))


def records_in(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of all records but markers, as a consumer finds them."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 10_000, log.log_end_offset).tobytes()
        assert data, f"there is nothing to read at offset {offset}"
        for position, header in iterate_headers(data):
            if not header.is_control:
                batch = data[position : position + header.size_in_bytes]
                found += [(one.offset, one.key, one.value) for one in iterate_records(batch)]
            offset = header.next_offset
    return found
