"""Directories of partitions that are gone when a broker starts, and links that lead nowhere."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING

import pytest

from storage.errors import DirectoryRefusedError
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    append,
    batch,
    crash,
    open_directories,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.directory.directories import LogDirectories


@pytest.fixture(params=[True, False], ids=["clean", "unclean"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory with a log of ten records and an empty one, of a broker that was stopped."""
    directories = open_directories(tmp_path / "data")
    directories.load(lambda _: SMALL)
    log = directories.create("flights", 0, TOPIC_ID, SMALL)
    append(log, batch(10))
    directories.create("hotels", 0, TOPIC_ID, SMALL)
    log.flush()
    directories.checkpoint_all()
    if request.param:
        directories.close()
    else:
        crash(directories)
    return tmp_path / "data"


def started(*paths: Path) -> LogDirectories:
    directories = open_directories(*paths)
    directories.load(lambda _: SMALL)
    return directories


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]


def test_a_partition_that_is_gone_although_it_had_records_is_an_error_once(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(data / "flights-0")
    shutil.rmtree(data / "hotels-0")

    started(data).close()

    (line,) = errors(caplog)
    assert line.startswith(f"{data}/flights-0 is missing, though recovery-point-offset-checkpoint ")
    assert "flushed up to offset 9" in line
    caplog.clear()
    started(data).close()
    assert errors(caplog) == []


def test_a_partition_in_another_directory_is_not_missing(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "other").mkdir()
    (data / "flights-0").rename(tmp_path / "other" / "flights-0")

    assert started(data, tmp_path / "other").get("flights", 0) is not None

    assert errors(caplog) == []


def test_a_partition_that_was_deleted_before_a_crash_is_not_missing(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directories = started(data)
    directories.delete("flights", 0, NOW_MS)
    crash(directories)

    assert started(data).get("flights", 0) is None

    assert errors(caplog) == []


def test_a_partition_without_records_is_not_missed(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directories = started(data)
    log = directories.get("flights", 0)
    assert log is not None
    log.advance_high_watermark(10)
    log.advance_log_start_offset(10)
    directories.checkpoint_all()
    crash(directories)
    shutil.rmtree(data / "flights-0")

    started(data)

    assert errors(caplog) == []


@pytest.mark.parametrize("target", ["nowhere", "x-0"], ids=["dangling", "loop"])
def test_a_link_that_leads_nowhere_is_named_and_costs_nothing_else(
    data: Path, caplog: pytest.LogCaptureFixture, target: str
) -> None:
    (data / "x-0").symlink_to(target)

    directories = started(data)

    assert {log.name for log in directories} == {"flights-0", "hotels-0"}
    assert not directories.is_any_offline
    assert f"{data}/x-0 is a link that leads nowhere: passed by" in caplog.messages


def test_a_segment_that_is_a_link_that_leads_nowhere_is_not_passed_by(data: Path) -> None:
    path = data / "flights-0" / f"{0:020d}.log"
    path.unlink()
    path.symlink_to("nowhere")

    directories = open_directories(data)
    with pytest.raises(DirectoryRefusedError, match=f"{path}: a link that leads nowhere"):
        directories.load(lambda _: SMALL)
