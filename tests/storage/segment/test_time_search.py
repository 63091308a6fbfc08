"""Look-ups by time, to the record and to the millisecond, against a plain list of records."""

from __future__ import annotations

import dataclasses
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from storage.errors import LogDirectoryError
from storage.segment.time_search import SMALL_BYTES, finished
from storage.segment.timestamp_offset import TimestampOffset
from tests.storage.produced import NOW_MS, SMALL, new_log

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log
    from storage.segment.time_search import Found, Search

FUTURE_MS = 1_000_000

times = st.one_of(st.integers(0, 60), st.sampled_from([FUTURE_MS, FUTURE_MS + 1]))
batches = st.lists(
    st.tuples(
        st.lists(times, min_size=1, max_size=5),
        st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.SNAPPY, Codec.ZSTD]),
        st.sampled_from([5, 5, 700]),
    ),
    max_size=25,
)


def append(log: Log, stamps: list[int], codec: Codec = Codec.NONE, value_bytes: int = 5) -> None:
    records = [NewRecord(NOW_MS + stamp, None, bytes(value_bytes)) for stamp in stamps]
    log.append_as_leader(memoryview(build_batch(records, codec=codec)), 0, NOW_MS)
    log.advance_high_watermark(log.log_end_offset)


def first(stamps: dict[int, int], timestamp: int) -> Found:
    """The first of the records, by offset, that is not earlier."""
    found = (offset for offset, stamp in stamps.items() if stamp >= timestamp)
    offset = min(found, default=None)
    return None if offset is None else TimestampOffset(NOW_MS + stamps[offset], offset, 0)


@settings(max_examples=60, deadline=None)
@given(batches, st.data())
def test_a_time_search_equals_a_linear_scan(drawn: Any, data: Any) -> None:
    config = dataclasses.replace(SMALL, segment_bytes=4000, message_timestamp_after_max_ms=2**62)
    with tempfile.TemporaryDirectory() as directory:
        log = new_log(directory, config)
        stamps = [stamp for batch, _, _ in drawn for stamp in batch]
        for batch, codec, value_bytes in drawn:
            append(log, batch, codec, value_bytes)
        log.advance_log_start_offset(data.draw(st.integers(0, len(stamps)), label="log start"))
        left = {
            offset: stamp for offset, stamp in enumerate(stamps) if offset >= log.log_start_offset
        }

        for target in data.draw(st.lists(times, max_size=8), label="targets"):
            assert log.offset_for_timestamp(NOW_MS + target) == first(left, target), target
        latest = max(left.values(), default=None)
        expected = None if latest is None else first(left, latest)
        assert log.offset_of_max_timestamp() == expected
        log.release()


def behind_the_future(tmp_path: Path) -> Log:
    """A log that begins after a record from the future: the time index knows nothing else."""
    config = dataclasses.replace(SMALL, segment_bytes=1 << 20, message_timestamp_after_max_ms=2**62)
    log = new_log(tmp_path, config)
    append(log, [FUTURE_MS])
    for number in range(500):
        append(log, [number])
    log.advance_log_start_offset(1)
    return log


def steps_of(search: Search[Found]) -> tuple[int, Found]:
    count = 0
    while True:
        try:
            work = search.send(None)
        except StopIteration as end:
            return count, end.value
        assert work is None
        count += 1


def test_others_are_served_while_a_segment_is_walked(tmp_path: Path) -> None:
    log = behind_the_future(tmp_path)

    count, found = steps_of(log.reader.search_timestamp(NOW_MS + 450))

    assert found == TimestampOffset(NOW_MS + 450, 451, 0)
    assert count > 20


@pytest.mark.parametrize(("codec", "size"), [(Codec.GZIP, 100), (Codec.NONE, SMALL_BYTES)])
def test_a_slow_part_of_a_time_search_is_returned_as_work(
    tmp_path: Path, codec: Codec, size: int
) -> None:
    log = new_log(tmp_path, dataclasses.replace(SMALL, segment_bytes=1 << 20))
    append(log, [1, 2, 3], codec, size)
    search = log.reader.search_timestamp(NOW_MS + 2)

    work = next(search)
    assert work is not None
    found = work()

    assert found == TimestampOffset(NOW_MS + 2, 1, 0)
    with pytest.raises(StopIteration) as end:
        search.send(found)
    assert end.value.value == found


def test_a_log_that_is_cut_during_a_search_is_searched_again(tmp_path: Path) -> None:
    log = behind_the_future(tmp_path)
    search = log.reader.search_timestamp(NOW_MS + 400)
    next(search)

    log.truncate_to(300)
    append(log, [402])

    assert finished(search) == TimestampOffset(NOW_MS + 402, 300, 0)


def test_a_log_that_begins_later_meanwhile_is_searched_again(tmp_path: Path) -> None:
    log = behind_the_future(tmp_path)
    search = log.reader.search_timestamp(NOW_MS + 40)
    for _ in range(2):
        next(search)

    log.advance_log_start_offset(200)

    assert finished(search) == TimestampOffset(NOW_MS + 199, 200, 0)


def test_segments_may_come_and_go_during_a_search(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, segment_bytes=1000, retention_bytes=1, retention_ms=-1)
    log = new_log(tmp_path, config)
    for number in range(60):
        append(log, [number])
    search = log.reader.search_max_timestamp()
    next(search)

    assert log.delete_expired(NOW_MS)
    append(log, [99])

    assert finished(search) == TimestampOffset(NOW_MS + 99, 60, 0)


def test_an_error_of_the_disk_takes_its_directory_offline(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, [1, 2, 3], Codec.GZIP)
    search = log.reader.search_timestamp(NOW_MS + 2)
    assert next(search) is not None

    with pytest.raises(LogDirectoryError):
        search.throw(OSError(5, "planted"))

    assert log.directory.failure is not None
