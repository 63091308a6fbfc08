"""A death at any step of a move to another log directory, and what a loss of power turns round."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from storage.disk import Disk
from storage.errors import DirectoryRefusedError
from storage.segment import file_names
from tests.storage.directory.moving import (
    begin,
    contents,
    copy_all,
    filled,
    log_of,
    move_of,
    moved,
    opened,
)
from tests.storage.mortal import KilledError, MortalFileSystem
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    all_offsets,
    append,
    batch,
    crash,
    open_directories,
)


@pytest.mark.parametrize("is_clean", [True, False])
def test_move_goes_on_after_a_restart(tmp_path: Path, is_clean: bool) -> None:
    logs = opened(tmp_path)
    log = filled(logs)
    move = begin(logs)
    move.align()
    move.append(move.next_piece().tobytes()[:1500], NOW_MS)
    copied = move.copy.log_end_offset
    assert 0 < copied < log.log_end_offset
    before = contents(log)
    logs.checkpoint_high_watermarks()
    logs.checkpoint_log_starts()
    logs.close() if is_clean else crash(logs)

    again = opened(tmp_path)

    assert move_of(again).copy.log_end_offset == copied
    moved(again)
    assert contents(log_of(again)) == before
    again.close()


def run_and_die(directory: Path, steps: int | None) -> int:
    """Move with records that come meanwhile; returns how many steps it took."""
    filesystem = MortalFileSystem()
    logs = opened(directory, Disk(filesystem))
    log = filled(logs)
    logs.checkpoint_high_watermarks()
    logs.checkpoint_log_starts()
    filesystem.taken, filesystem.steps = 0, steps
    with suppress(KilledError):
        begin(logs)
        copy_all(move_of(logs))
        for _ in range(3):
            append(log, batch(5), 3)
        moved(logs)
        append(log, batch(5), 3)
    crash(logs)
    return filesystem.taken


def test_death_at_any_step_of_a_move_costs_no_record(tmp_path: Path) -> None:
    total = run_and_die(tmp_path / "whole", None)
    assert total > 60
    ends = set()
    for steps in range(total):
        directory = tmp_path / str(steps)
        run_and_die(directory, steps)

        again = opened(directory)
        log = log_of(again)
        ends.add((log.directory is again.directories[1], len(again.moves)))
        assert log.log_end_offset >= 156
        assert (log.log_start_offset, log.epochs.entries()) == (47, [(0, 47), (3, 150)])
        if len(again.moves):
            moved(again)
            assert log_of(again).directory is again.directories[1]
        offsets = all_offsets(log_of(again))
        assert offsets == list(range(47, log.log_end_offset))
        assert len(list(directory.glob("*/flights-0"))) == 1
        again.close()
        shutil.rmtree(directory)
    assert ends == {(False, 0), (False, 1), (True, 0)}


def prepared(tmp_path: Path) -> tuple[list[object], Path, Path]:
    """A process died just before the renamings: contents, the log, and its copy."""
    logs = opened(tmp_path)
    log = filled(logs)
    move = begin(logs)
    copy_all(move)
    assert move.prepare()()
    logs.checkpoint_log_starts()
    logs.checkpoint_high_watermarks()
    before = contents(log)
    crash(logs)
    return before, Path(log.path), Path(move.copy.path)


def test_of_two_logs_left_by_a_power_failure_the_moved_one_counts(
    tmp_path: Path,
) -> None:
    before, _, copy = prepared(tmp_path)
    copy.rename(copy.with_name("flights-0"))

    logs = opened(tmp_path)

    assert contents(log_of(logs)) == before
    assert log_of(logs).directory is logs.directories[1]
    assert [path.name.rpartition("-")[2] for path in (tmp_path / "a").glob("flights*")] == [
        "delete"
    ]
    logs.close()


def test_two_logs_of_which_none_was_moved_are_refused(tmp_path: Path) -> None:
    _, log, _ = prepared(tmp_path)
    shutil.copytree(log, tmp_path / "b" / "flights-0")
    with pytest.raises(DirectoryRefusedError, match="are the same partition"):
        opened(tmp_path)


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_copy_without_its_log_replaces_it_only_if_marked_as_moved(
    tmp_path: Path, is_marked: bool
) -> None:
    before, old, copy = prepared(tmp_path)
    shutil.rmtree(old)
    if not is_marked:
        (copy / file_names.MOVED).unlink()

    logs = opened(tmp_path)

    found = logs.get("flights", 0)
    assert (found is not None) is is_marked
    assert copy.exists() is not is_marked, "nobody knows whether it is whole: it is left alone"
    if found is not None:
        assert contents(found) == before
        append(found, batch(5), 3)
    logs.close()


def test_copy_is_not_the_log_while_a_directory_cannot_be_read(tmp_path: Path) -> None:
    _, old, copy = prepared(tmp_path)
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"")

    logs = opened(tmp_path)

    assert logs.get("flights", 0) is None
    assert copy.exists()
    assert not old.exists()
    logs.close()


def test_copy_of_a_topic_that_is_gone_is_removed(tmp_path: Path) -> None:
    _, old, copy = prepared(tmp_path)
    metadata = old / file_names.PARTITION_METADATA
    another = UUID(int=77)
    logs = open_directories(tmp_path / "elsewhere")
    logs.load(lambda _topic: SMALL)
    logs.create("flights", 0, another, SMALL, NOW_MS)
    shutil.copy(tmp_path / "elsewhere" / "flights-0" / metadata.name, metadata)

    again = opened(tmp_path)

    assert len(again.moves) == 0
    assert not copy.exists()
    assert log_of(again).topic_id == another
    again.close()
