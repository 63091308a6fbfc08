"""Recovery after a crash: records kept and truncated, files rebuilt, and the notes about them."""

from __future__ import annotations

import dataclasses
import os
import random
import zlib
from typing import TYPE_CHECKING

import pytest

from storage.errors import DirectoryRefusedError
from storage.segment.timestamp_offset import TimestampOffset
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    all_offsets,
    append,
    batch,
    new_log,
    reopen,
    reopen_clean,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

HINTS = {"high_watermark": 80}


def fill(directory: Path, batches: int = 40) -> Log:
    """Batches of two records in several segments."""
    log = new_log(directory)
    for index in range(batches):
        data = batch(2, NOW_MS + index, Producer(7, 0, index * 2), value=b"x" * 30)
        append(log, data, epoch=index // 15)
    return log


def newest(directory: Path, suffix: str) -> Path:
    return max((directory / "flights-0").glob(f"*{suffix}"))


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "flights-0").iterdir()}


def test_everything_appended_is_there_after_a_crash(tmp_path: Path) -> None:
    log = fill(tmp_path)

    again, outcome = reopen(tmp_path, **HINTS)

    assert all_offsets(again) == list(range(80))
    assert again.epochs.entries() == log.epochs.entries()
    assert again.producers.producers[7].last_sequence == 79
    assert outcome.notes == []
    assert again.topic_id == log.topic_id


def test_a_torn_tail_is_truncated_and_reported(tmp_path: Path) -> None:
    log = fill(tmp_path)
    last_size = log.read(78, 1, 80).first_batch_size
    path = newest(tmp_path, ".log")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 5)

    again, outcome = reopen(tmp_path, **HINTS)

    assert all_offsets(again) == list(range(78))
    assert outcome.bytes_cut == last_size - 5
    assert outcome.notes == [
        (
            f"flights-0: {last_size - 5} bytes cut from the end of {path}, from offset 78 on: "
            "the batch is cut off or its length is wrong"
        )
    ]
    assert append(again, batch(1, producer=Producer(7, 0, 78))).first_offset == 78


@pytest.mark.parametrize("garbage", [b"\0" * 500, b"\xff" * 500, os.urandom(500), b"\0" * 5])
def test_garbage_after_the_last_batch_is_cut(tmp_path: Path, garbage: bytes) -> None:
    fill(tmp_path)
    with newest(tmp_path, ".log").open("ab") as file:
        file.write(garbage)

    again, outcome = reopen(tmp_path, **HINTS)

    assert all_offsets(again) == list(range(80))
    assert outcome.bytes_cut == len(garbage)


def test_damaged_batch_ends_the_log_there(tmp_path: Path) -> None:
    fill(tmp_path)
    path = newest(tmp_path, ".log")
    base = int(path.stem)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)

    again, outcome = reopen(tmp_path, **HINTS)

    assert all_offsets(again) == list(range(base))
    assert "the checksum does not match" in outcome.notes[0]
    assert again.epochs.entries()[-1][1] < base


def test_segments_after_an_unsound_one_go_too(tmp_path: Path) -> None:
    log = fill(tmp_path)
    first_of_second = log.segments.base_offsets[1]
    path = tmp_path / "flights-0" / f"{first_of_second:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    again, outcome = reopen(tmp_path, **HINTS)

    assert len(again.segments) == 2
    assert all_offsets(again) == list(range(again.log_end_offset))
    assert sum("follows the cut: removed" in note for note in outcome.notes) >= 1
    assert append(again, batch(1)).first_offset == again.log_end_offset - 1


def test_recovery_reads_only_unflushed_records(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.flush()
    point = log.recovery_point
    append(log, batch(2, producer=Producer(7, 0, 80)))

    again, outcome = reopen(tmp_path, recovery_point=point, **HINTS)

    assert all_offsets(again) == list(range(82))
    # From the last index entry before the recovery point: one interval and two batches at most.
    assert outcome.bytes_read < SMALL.index_interval_bytes + 3 * 160


def test_flushed_segments_are_not_opened(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.flush()

    again, _ = reopen(tmp_path, recovery_point=log.recovery_point, **HINTS)

    assert [segment._file is None for segment in again.segments][:-1] == [True] * (
        len(again.segments) - 1
    )


def test_recovered_files_are_those_of_a_clean_close(tmp_path: Path) -> None:
    fill(tmp_path / "crashed")
    fill(tmp_path / "closed").close()

    reopen(tmp_path / "crashed", **HINTS)[0].close()

    assert files(tmp_path / "crashed") == files(tmp_path / "closed")


def test_clean_start_reads_nothing_and_finds_everything(tmp_path: Path) -> None:
    log = fill(tmp_path)
    before = log.producers.snapshot()
    log.close()

    again = reopen_clean(tmp_path, **HINTS)

    assert again.recovery_point == again.log_end_offset == 80
    assert again.producers.snapshot() == before
    assert all_offsets(again) == list(range(80))
    append(again, batch(1))
    assert all_offsets(again) == list(range(81))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "torn", "garbage", "zeros", "empty"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_damaged_index_is_rebuilt_and_no_record_lost(
    tmp_path: Path, suffix: str, damage: str, is_clean: bool
) -> None:
    log = fill(tmp_path)
    if is_clean:
        log.close()
    chance = random.Random(suffix + damage)
    for path in (tmp_path / "flights-0").glob(f"*{suffix}"):
        size = path.stat().st_size
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(
                {
                    "torn": path.read_bytes()[: size - 1],
                    "garbage": chance.randbytes(min(size, 240)),
                    "zeros": bytes(size),
                    "empty": b"",
                }[damage]
            )

    again = reopen_clean(tmp_path, **HINTS) if is_clean else reopen(tmp_path, **HINTS)[0]

    assert all_offsets(again) == list(range(80))
    for offset in range(0, 80, 2):
        assert again.read(offset + 1, 1, 80).first_offset == offset
    assert append(again, batch(1)).first_offset == 80


def test_damaged_time_index_found_at_a_lookup_is_rebuilt(tmp_path: Path) -> None:
    fill(tmp_path).close()
    for path in (tmp_path / "flights-0").glob("*.timeindex"):
        path.write_bytes(b"")

    again = reopen_clean(tmp_path, **HINTS)

    assert again.offset_for_timestamp(NOW_MS + 1) == TimestampOffset(NOW_MS + 1, 1, 0)


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\0" * 56])
def test_damaged_snapshot_is_replaced_by_an_older_one_or_the_log(
    tmp_path: Path, damage: bytes
) -> None:
    log = fill(tmp_path)
    before = log.producers.producers[7].batches
    log.close()
    for path in (tmp_path / "flights-0").glob("*.snapshot"):
        path.write_bytes(damage)

    again = reopen_clean(tmp_path, **HINTS)

    assert again.producers.producers[7].batches == before
    assert append(again, batch(1, producer=Producer(7, 0, 80))).first_offset == 80


def test_snapshot_newer_than_the_log_is_not_used(tmp_path: Path) -> None:
    fill(tmp_path).close()
    path = newest(tmp_path, ".log")
    base = int(path.stem)
    with path.open("r+b") as file:
        file.truncate(0)

    again, _ = reopen(tmp_path, **HINTS)

    assert again.log_end_offset == base
    assert again.producers.producers[7].last_sequence == base - 1
    assert not (tmp_path / "flights-0" / f"{80:020d}.snapshot").exists()


@pytest.mark.parametrize("damage", [b"", b"x", b"0\n1\n"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_damaged_epoch_file_is_rebuilt(tmp_path: Path, damage: bytes, is_clean: bool) -> None:
    log = fill(tmp_path)
    entries = log.epochs.entries()
    if is_clean:
        log.close()
    (tmp_path / "flights-0" / "leader-epoch-checkpoint").write_bytes(damage)

    again = reopen_clean(tmp_path, **HINTS) if is_clean else reopen(tmp_path, **HINTS)[0]

    assert again.epochs.entries() == entries


@pytest.mark.parametrize("damage", [b"", b"0\n3\n0 0\n1 3"])
def test_epochs_before_the_recovery_point_are_rebuilt_too(tmp_path: Path, damage: bytes) -> None:
    """A power failure can empty the file, or cut it: it was replaced, and not yet on the disk."""
    log = fill(tmp_path)
    entries = log.epochs.entries()
    (tmp_path / "flights-0" / "leader-epoch-checkpoint").write_bytes(damage)

    again, _ = reopen(tmp_path, recovery_point=70, **HINTS)

    assert again.epochs.entries() == entries
    assert reopen(tmp_path, recovery_point=70, **HINTS)[0].epochs.entries() == entries


def test_epoch_that_begins_at_the_end_is_kept_and_one_beyond_is_not(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2, NOW_MS), epoch=0)
    log.assign_epoch(3, 2)
    path = tmp_path / "flights-0" / "leader-epoch-checkpoint"
    written = path.stat().st_ino

    assert reopen(tmp_path, **HINTS)[0].epochs.entries() == [(0, 0), (3, 2)]
    assert path.stat().st_ino == written  # nothing had to be written

    path.write_bytes(b"0\n3\n0 0\n3 2\n4 9\n")
    assert reopen(tmp_path, **HINTS)[0].epochs.entries() == [(0, 0), (3, 2)]


def test_a_damaged_topic_id_is_reported_and_loses_no_record(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "flights-0" / "partition.metadata").write_text("version: 0\n")

    again, outcome = reopen(tmp_path, **HINTS)

    assert all_offsets(again) == list(range(80))
    assert "holds no topic id" in outcome.notes[0]


def test_log_start_offset_is_the_checkpointed_one_or_the_first_segments(tmp_path: Path) -> None:
    fill(tmp_path)

    assert reopen(tmp_path, log_start_offset=33, **HINTS)[0].log_start_offset == 33
    assert reopen(tmp_path, log_start_offset=0, **HINTS)[0].log_start_offset == 0


def test_a_log_that_ends_before_its_log_start_restarts_there(tmp_path: Path) -> None:
    fill(tmp_path)

    again, outcome = reopen(tmp_path, log_start_offset=500, high_watermark=500)

    assert (again.log_start_offset, again.log_end_offset) == (500, 500)
    assert "emptied" in outcome.notes[0]
    assert append(again, batch(1)).first_offset == 500


def test_high_watermark_is_the_checkpointed_one_within_the_log(tmp_path: Path) -> None:
    fill(tmp_path)

    assert reopen(tmp_path, high_watermark=60)[0].high_watermark == 60
    assert reopen(tmp_path, high_watermark=10**6)[0].high_watermark == 80
    assert reopen(tmp_path, high_watermark=5, log_start_offset=9)[0].high_watermark == 9


def test_leftovers_of_deletion_and_of_half_written_files_are_removed(tmp_path: Path) -> None:
    fill(tmp_path)
    directory = tmp_path / "flights-0"
    leftovers = [f"{0:020d}.log.deleted", f"{0:020d}.log.cleaned", "x.tmp", f"{7777:020d}.index"]
    for name in leftovers:
        (directory / name).write_bytes(b"x" * 24)

    again, _ = reopen(tmp_path, **HINTS)

    assert all_offsets(again) == list(range(80))
    assert not any((directory / name).exists() for name in leftovers)


def test_swapped_segment_takes_the_place_of_those_it_replaces(tmp_path: Path) -> None:
    log = fill(tmp_path)
    directory = tmp_path / "flights-0"
    second = log.segments.base_offsets[2]
    joined = b"".join(
        (directory / f"{base:020d}.log").read_bytes() for base in log.segments.base_offsets[:2]
    )
    (directory / f"{0:020d}.log.swap").write_bytes(joined)

    again, _ = reopen(tmp_path, **HINTS)

    assert again.segments.base_offsets[:2] == [0, second]
    assert all_offsets(again) == list(range(80))


def test_swap_of_an_unfinished_group_is_undone(tmp_path: Path) -> None:
    fill(tmp_path)
    directory = tmp_path / "flights-0"
    (directory / f"{0:020d}.log.swap").write_bytes(b"")
    (directory / f"{0:020d}.log.cleaned").write_bytes(b"")

    again, _ = reopen(tmp_path, **HINTS)

    assert all_offsets(again) == list(range(80))


def test_messages_of_an_old_format_are_refused_not_cut(tmp_path: Path) -> None:
    fill(tmp_path, batches=1)
    path = newest(tmp_path, ".log")
    content = b"\1\0" + bytes(8) + b"\xff\xff\xff\xff" + b"\0\0\0\1v"
    message = zlib.crc32(content).to_bytes(4, "big") + content
    old = (2).to_bytes(8, "big") + len(message).to_bytes(4, "big") + message
    with path.open("ab") as file:
        file.write(old)
    size = path.stat().st_size

    with pytest.raises(DirectoryRefusedError, match="format 1"):
        reopen(tmp_path, **HINTS)
    assert path.stat().st_size == size


def test_directory_without_segments_is_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "flights-0").mkdir()

    log, _ = reopen(tmp_path, log_start_offset=12)

    assert (log.log_start_offset, log.log_end_offset) == (12, 12)


def test_preallocated_indexes_of_a_crash_are_understood(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, segment_bytes=1 << 20, index_interval_bytes=0)
    log = new_log(tmp_path, config)
    for index in range(200):
        append(log, batch(1, NOW_MS + index))
    assert newest(tmp_path, ".index").stat().st_size == 10_485_760
    log.flush()
    point = log.recovery_point

    again, outcome = reopen(tmp_path, config, recovery_point=point, **HINTS)

    assert outcome.bytes_read <= 2 * len(batch(1))
    assert all_offsets(again) == list(range(200))
    assert len(again.segments.active.offset_index) == 199
