"""Several log directories: locks, identity, creation, deletion, checkpoints."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from config.topic import TopicConfig
from storage.compaction.swap import discard_cleaned
from storage.directory.checkpoints import decode_offsets
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.errors import DeletedLogError, DirectoryRefusedError
from storage.log.log_settings import LogSettings
from tests.storage.produced import (
    NOW_MS,
    TOPIC_ID,
    FillingFileSystem,
    all_offsets,
    append,
    batch,
    crash,
    open_directories,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from storage.directory.directory_loader import LoadReport

CONFIG = TopicConfig(segment_bytes=2000, flush_ms=1000)


def load(directories: LogDirectories) -> LoadReport:
    return directories.load(lambda _topic: CONFIG)


def fill(directories: LogDirectories, partitions: int = 3) -> None:
    load(directories)
    for partition in range(partitions):
        log = directories.create("flights", partition, TOPIC_ID, CONFIG, NOW_MS)
        for _ in range(20):
            append(log, batch(5))


def test_files_of_a_directory_are_apaches(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories, 1)
    log = directories.get("flights", 0)
    assert log is not None
    log.advance_log_start_offset(3)

    directories.close()

    assert (tmp_path / "meta.properties").read_text().splitlines()[2:] == [
        "broker.id=1",
        "version=0",
        "cluster.id=cluster",
    ]
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":-1}'
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nflights 0 100\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\nflights 0 100\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nflights 0 3\n"
    assert (tmp_path / ".lock").read_bytes() == b""


def test_log_start_at_a_segment_is_not_checkpointed(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    directories.checkpoint_log_starts()

    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"


def test_clean_start_loads_all_and_takes_the_mark_away(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    directories.close()

    again = open_directories(tmp_path)
    report = load(again)

    assert (report.logs, report.bytes_read, report.unclean_directories) == (3, 0, [])
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert [all_offsets(log) for log in again] == [list(range(100))] * 3


def test_a_crash_recovers_every_log_and_reports_progress(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    crash(directories)
    seen: list[tuple[int, int, str]] = []

    again = open_directories(tmp_path)
    report = again.load(lambda _topic: CONFIG, lambda *step: seen.append(step))

    assert report.unclean_directories == [str(tmp_path)]
    assert report.bytes_read > 0
    assert [log.log_end_offset for log in again] == [100] * 3
    assert seen == [
        (0, 3, "flights-0"),
        (1, 3, "flights-1"),
        (2, 3, "flights-2"),
        (3, 3, ""),
    ]


def test_start_that_fails_before_loading_leaves_all_as_it_was(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    directories.checkpoint_recovery_points()
    directories.checkpoint_high_watermarks()
    crash(directories)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}

    again = open_directories(tmp_path)
    again.close()

    after = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    assert after == before
    assert load(open_directories(tmp_path)).unclean_directories == [str(tmp_path)]


def test_load_that_is_broken_off_counts_as_a_crash(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    directories.close()

    class BrokenOffError(Exception):
        pass

    def interrupt(done: int, _total: int, _name: str) -> None:
        if done == 2:
            raise BrokenOffError

    again = open_directories(tmp_path)
    with pytest.raises(BrokenOffError):
        again.load(lambda _topic: CONFIG, interrupt)
    again.close()

    last = open_directories(tmp_path)
    assert load(last).unclean_directories == [str(tmp_path)]
    assert [all_offsets(log) for log in last] == [list(range(100))] * 3


def test_many_logs_are_closed_with_one_wait_for_the_disk(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories, 20)
    logs = list(directories)

    directories.close()

    assert all(log.recovery_point == 100 for log in logs)
    again = open_directories(tmp_path)
    assert load(again).unclean_directories == []
    assert [log.log_end_offset for log in again] == [100] * 20


def test_recovery_points_of_before_a_cut_do_not_stay_on_the_disk(tmp_path: Path) -> None:
    waiting: list[Callable[[], None]] = []
    directories = open_directories(tmp_path, settings=LogSettings(run_later=waiting.append))
    fill(directories, 2)
    for log in directories:
        log.flush()
    directories.checkpoint_recovery_points()
    waiting.clear()

    for log in directories:
        log.truncate_to(40)
        append(log, batch())
    assert len(waiting) == 1, "many logs are cut at once when a leader dies"
    waiting.pop()()

    points = decode_offsets((tmp_path / "recovery-point-offset-checkpoint").read_bytes())
    assert set(points.values()) == {40}
    waiting.clear()
    append(log, batch())
    log.truncate_to(40)
    assert waiting == [], "nothing behind it was on the disk"


def test_second_broker_on_a_directory_is_refused(tmp_path: Path) -> None:
    directories = open_directories(tmp_path / "a")

    with pytest.raises(DirectoryRefusedError, match="another broker is using"):
        open_directories(tmp_path / "b", tmp_path / "a")
    directories.close()
    open_directories(tmp_path / "a").close()


@pytest.mark.parametrize(
    ("broker_id", "cluster_id", "message"),
    [(2, "cluster", "broker.id is 2, .* says 1"), (1, "other", "cluster id is other, .* says")],
)
def test_other_identity_is_refused(
    tmp_path: Path, broker_id: int, cluster_id: str, message: str
) -> None:
    open_directories(tmp_path).close()
    again = LogDirectories.open([str(tmp_path)], Disk(FillingFileSystem()), LogSettings())
    assert (again.identity.broker_id, again.identity.cluster_id) == (1, "cluster")

    with pytest.raises(DirectoryRefusedError, match=message):
        again.identify(broker_id, cluster_id, NOW_MS)


def test_directories_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    open_directories(tmp_path / "a").close()
    open_directories(tmp_path / "b").close()
    path = tmp_path / "b" / "meta.properties"
    path.write_text(path.read_text().replace("broker.id=1", "broker.id=2"))

    with pytest.raises(DirectoryRefusedError, match=r"broker\.id=2, another directory says 1"):
        open_directories(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("text", ["version=7\n", "broker.id=1\n", "no sense", "\0"])
def test_damaged_meta_properties_are_refused(tmp_path: Path, text: str) -> None:
    open_directories(tmp_path).close()
    (tmp_path / "meta.properties").write_text(text)

    with pytest.raises(DirectoryRefusedError, match=r"meta\.properties is damaged"):
        open_directories(tmp_path)


def test_new_logs_go_where_there_are_fewest(tmp_path: Path) -> None:
    directories = open_directories(tmp_path / "a", tmp_path / "b")
    fill(directories, 5)

    counts = [len(list((tmp_path / name).glob("flights-*"))) for name in "ab"]

    assert sorted(counts) == [2, 3]
    assert directories.create("flights", 0, TOPIC_ID, CONFIG) is directories.get("flights", 0)


def test_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        directories = open_directories(tmp_path / name)
        fill(directories, 1)
        directories.close()

    with pytest.raises(DirectoryRefusedError, match="the same partition"):
        load(open_directories(tmp_path / "a", tmp_path / "b"))


def test_deleted_log_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)

    directories.delete("flights", 1, NOW_MS)

    renamed = tmp_path / f"flights-1.{TOPIC_ID.hex}-delete"
    assert renamed.is_dir()
    assert directories.get("flights", 1) is None
    assert directories.take_removals(NOW_MS + 59_999) == []
    due = directories.take_removals(NOW_MS + 60_000)
    assert due == [str(renamed)]
    assert directories.take_removals(NOW_MS + 60_000) == []
    directories.remove(due[0])
    assert not renamed.exists()


def test_recreated_topic_gets_an_empty_log(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    directories.delete("flights", 1, NOW_MS)

    log = directories.create("flights", 1, UUID(int=6), CONFIG)

    assert (log.log_end_offset, log.topic_id) == (0, UUID(int=6))
    directories.delete("flights", 1, NOW_MS)
    assert len(list(tmp_path.glob("flights-1.*-delete"))) == 2


def test_late_changes_to_a_deleted_log_do_not_affect_its_successor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directories = open_directories(tmp_path)
    fill(directories, partitions=1)
    old = directories.get("flights", 0)
    assert old is not None
    flush = old.flushes.start()
    directories.delete("flights", 0, NOW_MS)
    log = directories.create("flights", 0, UUID(int=6), CONFIG)
    append(log, batch(7))

    for late in (
        lambda: old.truncate_to(3),
        lambda: old.truncate_fully_and_start_at(200),
        lambda: append(old, batch(1)),
        lambda: old.roll(NOW_MS),
        lambda: old.delete_expired(NOW_MS),
        lambda: discard_cleaned(old),
    ):
        with pytest.raises(DeletedLogError):
            late()
    flush()

    log.release()  # read what lies on the disk
    assert all_offsets(log) == [*range(7)]
    assert (log.directory.failure, caplog.text) == (None, "")


def test_deleted_logs_are_found_again_after_a_restart(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    directories.delete("flights", 0, NOW_MS)
    crash(directories)

    again = open_directories(tmp_path)
    report = load(again)

    assert report.logs == 2
    assert len(again.take_removals(NOW_MS)) == 1


def test_retention_runs_over_all_logs_and_removes_files_later(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    for log in directories:
        log.config = TopicConfig(segment_bytes=2000, retention_bytes=0)

    count = sum(directories.delete_expired(NOW_MS))
    for path in directories.take_removals(NOW_MS + 60_000):
        directories.remove(path)

    assert count > 0
    assert all(log.size_in_bytes == 0 for log in directories)
    assert list(tmp_path.glob("*/*.deleted")) == []


def test_flush_is_due_after_flush_ms(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    assert directories.flush_due(NOW_MS) != []

    append(next(iter(directories)), batch(1))
    due = directories.flush_due(NOW_MS + 1000)
    for flush in due:
        flush()

    assert directories.flush_due(NOW_MS + 1999) == []
    assert all(log.recovery_point == log.log_end_offset for log in directories)
    assert directories.flush_due(NOW_MS + 3000) == []


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_a_damaged_checkpoint_is_reported_and_loses_no_record(tmp_path: Path, name: str) -> None:
    directories = open_directories(tmp_path)
    fill(directories)
    directories.close()
    (tmp_path / name).write_bytes(b"0\n3\nflights 0")

    again = open_directories(tmp_path)
    report = load(again)

    assert any(name in note and "damaged" in note for note in report.notes)
    for log in again:
        assert log.log_end_offset == 100
        log.advance_high_watermark(100)
        assert all_offsets(log) == list(range(100))


def test_directories_that_are_no_partitions_are_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    names = ["__cluster_metadata-0", "flights-0.0123-future", "lost+found", "my dir", "foo-bar"]
    for name in names:
        (tmp_path / name).mkdir(parents=True)

    directories = open_directories(tmp_path)
    report = load(directories)

    assert (report.logs, len(report.notes)) == (0, 2)
    assert all((tmp_path / name).is_dir() for name in names)
    for name in names[2:]:
        assert f"{tmp_path}/{name} is no partition's: left alone" in caplog.messages
