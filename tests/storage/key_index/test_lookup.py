"""Look-ups over several segments and partitions: limits, transactions, and logs that change."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from protocol.records.control import ControlType
from storage.filesystem import LocalFileSystem
from storage.key_index.job import (
    BuildJob,
    JobFailed,
    LookupDone,
    LookupJob,
    LookupLimits,
    PartitionPlace,
    SegmentPlace,
    decode_job,
    decode_report,
    encode_job,
    encode_report,
)
from storage.key_index.lookup import Lookup
from storage.key_index.placement import discard_indexes, index_path, sound_indexes
from storage.key_index.query import Query
from tests.storage.compaction.compacting import compact, keyed
from tests.storage.key_index.indexing import index_closed_segments
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    append,
    append_marker,
    marker,
    new_log,
    reopen,
)

if TYPE_CHECKING:
    from storage.log.log import Log

PLENTY = LookupLimits(1000, 1 << 20, 60_000)
COMPACTED = dataclasses.replace(
    SMALL, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01
)


def place(log: Log, partition: int = 0, from_offset: int = 0) -> PartitionPlace:
    first = log.segments.floor(from_offset)
    segments = list(log.segments)[first:]
    return PartitionPlace(
        partition,
        log.path,
        tuple(SegmentPlace(one.base_offset, one.size) for one in segments),
        max(from_offset, log.log_start_offset),
        log.high_watermark,
    )


def job(*places: PartitionPlace, limits: LookupLimits = PLENTY, **query: Any) -> LookupJob:
    is_read_committed = query.pop("is_read_committed", True)
    wanted = Query(query.pop("key", b"key"), query.pop("message_id", None), **query)
    return LookupJob(wanted, places, limits, is_read_committed)


def run(wanted: LookupJob, elapsed_ms: float = 0) -> tuple[LookupDone, list[dict[str, Any]]]:
    report, records = Lookup(wanted, LocalFileSystem(), lambda: elapsed_ms).run()
    assert isinstance(report, LookupDone), report
    assert report.length == len(records)
    found = json.loads(records)
    assert report.records == len(found)
    return report, found


def offsets(found: list[dict[str, Any]]) -> list[int]:
    return [record["offset"] for record in found]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Two hundred batches of two records, one of them with the key `key`, in many segments."""
    log = new_log(tmp_path)
    for number in range(200):
        append(log, keyed([(b"key", b"%d" % number), (b"other", b"\xff")], NOW_MS + 10 * number))
    assert len(log.segments) > 5
    return log


@pytest.mark.parametrize("has_indexes", [False, True])
def test_all_segments_are_searched_in_order(log: Log, *, has_indexes: bool) -> None:
    if has_indexes:
        index_closed_segments(log)

    report, found = run(job(place(log, partition=3)))

    assert offsets(found) == list(range(0, 400, 2))
    assert {record["partition"] for record in found} == {3}
    assert report.next_partition == report.next_offset == -1
    assert report.segments == len(log.segments)
    assert report.segments_without_index == (1 if has_indexes else len(log.segments))
    assert found[7] == {
        "partition": 3,
        "offset": 14,
        "timestamp": NOW_MS + 70,
        "key": "key",
        "value": "7",
        "headers": [],
    }
    assert run(job(place(log), key=b"other"))[1][0]["value"] == {"base64": "/w=="}


@pytest.mark.parametrize("has_indexes", [False, True])
@pytest.mark.parametrize("limits", [LookupLimits(7, 1 << 20, 1), LookupLimits(1000, 9, 1)])
def test_a_limited_look_up_continues_from_its_next_offset(
    log: Log, limits: LookupLimits, *, has_indexes: bool
) -> None:
    if has_indexes:
        index_closed_segments(log)
    found: list[int] = []
    start, rounds = 0, 0
    while start >= 0:
        report, page = run(job(place(log, from_offset=start), limits=limits))
        found += offsets(page)
        start = report.next_offset
        rounds += 1

    assert found == list(range(0, 400, 2))
    assert rounds > 10


def test_a_look_up_whose_time_is_over_gets_on_nevertheless(log: Log) -> None:
    found: list[int] = []
    start, rounds = 0, 0
    while start >= 0:
        places = place(log, from_offset=start)
        elapsed = iter([0, *([10**6] * 10**4)])
        report, data = Lookup(
            job(places, limits=LookupLimits(1000, 1 << 20, 100)),
            LocalFileSystem(),
            lambda elapsed=elapsed: next(elapsed),  # type: ignore[misc]
        ).run()
        assert isinstance(report, LookupDone)
        found += offsets(json.loads(data))
        assert report.next_offset > start or report.next_offset == -1
        start = report.next_offset
        rounds += 1

    assert found == list(range(0, 400, 2))
    assert rounds > 3


def test_records_of_aborted_transactions_are_left_out_unless_they_are_asked_for(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    for number, end in enumerate([ControlType.ABORT, ControlType.COMMIT, ControlType.ABORT] * 10):
        producer = Producer(7, 0, number, is_transactional=True)
        append(log, keyed([(b"key", b"%d" % number)], producer=producer))
        append(log, keyed([(b"key", b"of no transaction")]))
        append_marker(log, marker(producer, end))
    index_closed_segments(log)

    committed = offsets(run(job(place(log)))[1])
    everything = offsets(run(job(place(log), is_read_committed=False))[1])

    transactional = range(0, 90, 3)
    aborted = {offset for offset in transactional if offset // 3 % 3 != 1}
    assert everything == sorted([*transactional, *range(1, 90, 3)])
    assert committed == [offset for offset in everything if offset not in aborted]


def test_only_offsets_that_are_asked_for_are_given(log: Log) -> None:
    wanted = dataclasses.replace(place(log), from_offset=20, to_offset=31)

    assert offsets(run(job(wanted))[1]) == [20, 22, 24, 26, 28, 30]


def test_a_log_that_is_cut_or_deleted_meanwhile_is_noticed(log: Log) -> None:
    before = place(log)
    log.truncate_to(50)
    for _ in range(2):
        report, _ = Lookup(job(before), LocalFileSystem(), lambda: 0).run()
        assert isinstance(report, JobFailed)
        assert report.is_outdated
        before = place(log)
        for path in Path(log.path).glob("*.log"):
            path.rename(f"{path}.deleted")


def test_a_key_index_is_removed_with_its_segment(log: Log, tmp_path: Path) -> None:
    index_closed_segments(log)
    directory = Path(log.path)
    bases = log.segments.base_offsets.copy()
    assert {int(path.stem) for path in directory.glob("*.keyindex")} == set(bases[:-1])

    log.truncate_to(bases[3] + 2)  # the fourth segment is the active one now
    assert {int(path.stem) for path in directory.glob("*.keyindex")} == set(bases[:3])

    log.advance_log_start_offset(bases[1])
    removed = log.delete_expired(NOW_MS)
    assert f"{directory}/{bases[0]:020d}.keyindex.deleted" in removed
    assert {int(path.stem) for path in directory.glob("*.keyindex")} == set(bases[1:3])

    Path(index_path(log.path, 10**9)).write_bytes(b"of no segment")
    (directory / f"{bases[1]:020d}.keyindex.tmp").write_bytes(b"half written")
    again, _ = reopen(tmp_path)
    assert {int(path.name.split(".")[0]) for path in directory.glob("*.keyindex*")} == set(
        bases[1:3]
    )
    closed = list(again.segments)[:-1]
    assert sorted(sound_indexes(again, closed)) == bases[1:3]
    discard_indexes(again)
    assert not list(directory.glob("*.keyindex"))


def test_compaction_removes_key_indexes_of_replaced_segments(tmp_path: Path) -> None:
    log = new_log(tmp_path, COMPACTED)
    for number in range(100):
        append(log, keyed([(b"key-%d" % (number % 30), b"%d" % number)]))
    index_closed_segments(log)

    compact(log)

    assert not list(Path(log.path).glob("*.keyindex"))
    without = offsets(run(job(place(log), key=b"key-9"))[1])
    index_closed_segments(log)
    report, found = run(job(place(log), key=b"key-9"))
    assert offsets(found) == without == [69, 99]
    assert (report.segments_without_index, report.damaged) == (1, ())


def test_a_key_index_of_a_segment_compacted_by_others_is_not_used(tmp_path: Path) -> None:
    """Apache Kafka, for example, does not know the index and leaves it when it compacts."""
    log = new_log(tmp_path, COMPACTED)
    for number in range(100):
        append(log, keyed([(b"key-%d" % (number % 30), b"%d" % number)]))
    index_closed_segments(log)
    kept = {path: path.read_bytes() for path in Path(log.path).glob("*.keyindex")}
    compact(log)
    for path, data in kept.items():
        path.write_bytes(data)

    report, found = run(job(place(log), key=b"key-9"))

    assert offsets(found) == [69, 99]
    assert report.damaged
    sound = sound_indexes(log, list(log.segments)[:-1])
    assert len(sound) < len(kept)
    index_closed_segments(log)
    for base_offset in sound:  # these segments are the bytes that they were
        path = Path(index_path(log.path, base_offset))
        assert path.read_bytes() == kept[path]


def test_jobs_and_reports_are_the_same_after_they_were_sent(log: Log) -> None:
    for wanted in (
        job(place(log), place(log, 1), key=None, message_id=b"\xff"),
        BuildJob(log.path, 5, 100, 1e300),
    ):
        assert decode_job(encode_job(wanted)) == wanted
    for report in (
        LookupDone(1, 2, 3, 4, 5, 6, 7, ((1, 2), (3, 4))),
        JobFailed("no", 5, is_outdated=True),
    ):
        assert decode_report(encode_report(report)) == report
