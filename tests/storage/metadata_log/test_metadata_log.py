"""The directory of the metadata log: opened, cut, replaced by a snapshot, cleaned, and killed."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from protocol.metadata_log.snapshots import SnapshotId
from storage.errors import DirectoryRefusedError
from tests.storage.metadata_log.opened import NOW_MS, SMALL, extend, names, opened, put_snapshot
from tests.storage.mortal import KilledError, MortalFileSystem
from tests.storage.produced import all_offsets
from tests.support.broker_parts.metadata_leader import NOW_MS as RECORDED_MS
from tests.support.broker_parts.metadata_leader import data_batch, feature, snapshot_of

if TYPE_CHECKING:
    from pathlib import Path

    from storage.metadata_log.metadata_log import MetadataLogSettings

FIVE, TEN = SnapshotId(5, 1), SnapshotId(10, 1)
FIVE_NAME = "00000000000000000005-0000000001.checkpoint"
TEN_NAME = "00000000000000000010-0000000001.checkpoint"


def test_new_directory_is_laid_out_as_apaches(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert log.log.path == f"{tmp_path}/__cluster_metadata-0"
    assert names(log) == ["00000000000000000000.log", "partition.metadata"]
    content = (tmp_path / "__cluster_metadata-0" / "partition.metadata").read_text()
    assert content == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize("is_clean", [True, False])
def test_log_and_snapshot_are_found_again_after_a_restart(tmp_path: Path, is_clean: bool) -> None:
    log = opened(tmp_path)
    extend(log, 8)
    put_snapshot(log, FIVE)
    if is_clean:
        log.log.close()

    again = opened(tmp_path)

    assert again.snapshots.ids == [FIVE]
    assert again.log.log_end_offset == 8
    assert again.log.high_watermark == 5, "what a snapshot holds is committed, and no more is known"
    assert again.epochs == ((1, 0),)
    assert again.notes == []


def test_missing_partition_metadata_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir(parents=True)
    assert "partition.metadata" in names(opened(tmp_path))


def test_left_over_files_of_snapshots_go_at_the_start(tmp_path: Path) -> None:
    opened(tmp_path)
    directory = tmp_path / "__cluster_metadata-0"
    for name in (f"{FIVE_NAME}.part", f"{FIVE_NAME}.deleted", "x.checkpoint.part"):
        (directory / name).write_bytes(b"")
    (directory / "00000000000000000005-0000000001-7.checkpoint.part").write_bytes(b"half")
    (directory / "00000000000000000000-0000000000.checkpoint").write_bytes(b"bootstrap")

    log = opened(tmp_path)

    assert log.snapshots.ids == []
    assert names(log) == [
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000000.log",
        "partition.metadata",
        "x.checkpoint.part",
    ]


def test_log_goes_on_at_a_snapshot_that_lies_beyond_it(tmp_path: Path) -> None:
    log = opened(tmp_path)
    extend(log, 8)
    put_snapshot(log, FIVE)
    put_snapshot(log, SnapshotId(20, 3))

    again = opened(tmp_path)

    assert again.snapshots.ids == [SnapshotId(20, 3)]
    assert (again.log.log_start_offset, again.log.log_end_offset) == (20, 20)
    assert (again.log.high_watermark, again.epochs) == (20, ())
    assert "goes on at" in again.notes[-1]


def test_snapshots_before_the_log_start_go_at_the_start(tmp_path: Path) -> None:
    log = opened(tmp_path)
    extend(log, 12)
    put_snapshot(log, FIVE)
    put_snapshot(log, TEN)
    log.log.advance_log_start_offset(10)
    log.log.delete_expired(NOW_MS)
    log.log.close()
    assert opened(tmp_path).snapshots.ids == [TEN]


def test_log_without_its_beginning_and_without_a_snapshot_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path)
    extend(log, 12)
    log.log.advance_log_start_offset(10)
    log.log.delete_expired(NOW_MS)
    log.log.close()
    with pytest.raises(DirectoryRefusedError, match="begins at offset"):
        opened(tmp_path)


def test_damaged_batch_is_left_out_and_told_of(tmp_path: Path) -> None:
    log = opened(tmp_path)
    good, bad = data_batch([feature("a")], 0, 1), bytearray(data_batch([feature("b")], 1, 1))
    bad[-1] ^= 1
    assert "offset 1 is damaged" in log.append(good + bytes(bad), NOW_MS)
    assert log.log.log_end_offset == 1


def test_log_replaced_by_a_snapshot_begins_where_that_ends(tmp_path: Path) -> None:
    log = opened(tmp_path)
    extend(log, 8)
    put_snapshot(log, FIVE)
    put_snapshot(log, SnapshotId(20, 3))

    removed = log.replace_by(SnapshotId(20, 3))

    assert [path.rpartition("/")[2] for path in removed] == [f"{FIVE_NAME}.deleted"]
    assert (log.log.log_start_offset, log.log.log_end_offset, log.epochs) == (20, 20, ())
    assert log.append(data_batch([feature("a")], 20, 4), NOW_MS) == ""
    assert log.epochs == ((4, 20),)


def replace_and_die(directory: Path, steps: int | None) -> int:
    """Download a snapshot and replace the log by it; returns how many steps it took."""
    filesystem = MortalFileSystem()
    log = opened(directory, SMALL, filesystem)
    extend(log, 8)
    put_snapshot(log, FIVE)
    filesystem.taken, filesystem.steps = 0, steps
    with suppress(KilledError):
        put_snapshot(log, SnapshotId(20, 3))
        for path in log.replace_by(SnapshotId(20, 3)):
            filesystem.remove(path)
        assert log.append(data_batch([feature("after")], 20, 4), NOW_MS) == ""
    return filesystem.taken


def test_death_at_any_step_of_a_replacement_leaves_the_old_state_or_the_new(tmp_path: Path) -> None:
    total = replace_and_die(tmp_path / "whole", None)
    assert total > 10
    states = set()
    for steps in range(total):
        directory = tmp_path / str(steps)
        replace_and_die(directory, steps)

        again = opened(directory)

        newest = again.snapshots.newest
        assert newest is not None
        states.add((newest, again.log.log_start_offset, again.log.log_end_offset))
        again.snapshots.timestamp_ms(newest)
        assert all_offsets(again.log) == list(
            range(again.log.log_start_offset, again.log.log_end_offset)
        )
        assert again.log.high_watermark == newest.end_offset
        assert [name for name in names(again) if name.endswith((".part", ".deleted"))] == []
        shutil.rmtree(directory)
    assert states == {
        (FIVE, 0, 8),
        (SnapshotId(20, 3), 20, 20),
        (SnapshotId(20, 3), 20, 21),
    }


def with_two_snapshots(tmp_path: Path, settings: MetadataLogSettings) -> tuple[Path, int, int]:
    """Log of 12 records and two snapshots; the directory, and the sizes of log and snapshot."""
    log = opened(tmp_path, settings)
    extend(log, 12)
    put_snapshot(log, FIVE)
    size = put_snapshot(log, TEN)
    return tmp_path, log.log.size_in_bytes, size


def test_oldest_snapshot_and_its_segments_go_when_all_is_too_large(tmp_path: Path) -> None:
    directory, log_bytes, size = with_two_snapshots(tmp_path, SMALL)
    at_limit = opened(directory, SMALL._replace(retention_bytes=log_bytes + 2 * size))
    at_limit.log.advance_high_watermark(12)
    assert at_limit.clean(NOW_MS) == []

    log = opened(directory, SMALL._replace(retention_bytes=log_bytes + 2 * size - 1))
    log.log.advance_high_watermark(12)
    removed = log.clean(NOW_MS)

    assert log.snapshots.ids == [TEN]
    assert log.log.log_start_offset == 10
    assert log.log.size_in_bytes < log_bytes
    assert f"{log.log.path}/{FIVE_NAME}.deleted" in removed
    assert any(path.endswith(".log.deleted") for path in removed)
    assert TEN_NAME in names(log)


def test_newest_snapshot_stays_however_large_all_is(tmp_path: Path) -> None:
    directory, _, _ = with_two_snapshots(tmp_path, SMALL)
    log = opened(directory, SMALL._replace(retention_bytes=0))
    log.log.advance_high_watermark(12)
    log.clean(NOW_MS)
    assert log.snapshots.ids == [TEN]
    assert log.clean(NOW_MS) == []


def test_snapshot_goes_when_its_last_record_is_too_old(tmp_path: Path) -> None:
    directory, _, _ = with_two_snapshots(tmp_path, SMALL)
    log = opened(directory, SMALL._replace(retention_ms=1000))
    log.log.advance_high_watermark(12)
    assert log.clean(RECORDED_MS + 1000) == []
    log.clean(RECORDED_MS + 1001)
    assert log.snapshots.ids == [TEN]


def test_snapshot_above_the_high_watermark_is_not_gone_by(tmp_path: Path) -> None:
    directory, _, _ = with_two_snapshots(tmp_path, SMALL)
    log = opened(directory, SMALL._replace(retention_bytes=0))
    log.log.offsets.high_watermark = 9
    assert log.clean(NOW_MS) == []


def test_finished_snapshot_that_the_log_has_passed_by_is_removed(tmp_path: Path) -> None:
    log = opened(tmp_path)
    extend(log, 8)
    late = log.snapshots.begin(FIVE)
    late.append(snapshot_of([feature("late")], 1))
    put_snapshot(log, SnapshotId(20, 3))
    log.replace_by(SnapshotId(20, 3))
    late.finish()
    assert [path.rpartition("/")[2] for path in log.adopt(late)] == [f"{FIVE_NAME}.deleted"]
    assert log.snapshots.ids == [SnapshotId(20, 3)]


def test_abandoned_snapshot_leaves_nothing_behind(tmp_path: Path) -> None:
    log = opened(tmp_path)
    before = names(log)
    partial = log.snapshots.begin(FIVE)
    partial.append(b"half")
    assert names(log) != before
    partial.abandon()
    assert names(log) == before
