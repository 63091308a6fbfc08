"""A log directory that Apache Kafka 3.9.1 wrote and closed, in `tests/golden/disk`.

One partition of segment.bytes=14000: five idempotent producers, one for each codec, then six
transactions, every other one aborted; the broker was killed and restarted before it was stopped.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from config.topic import TopicConfig
from protocol.records.batch import parse_header
from storage.append.append_source import FROM_CLIENT, FROM_COORDINATOR
from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_loader import LoadHints, create_log, load_log
from storage.log.log_settings import LogPlace, LogSettings
from storage.segment.aborted_index import AbortedTransaction
from tests.storage.produced import NOW_MS, all_offsets, open_directories

GOLDEN = Path(__file__).parents[2] / "golden" / "disk"
CONFIG = TopicConfig(segment_bytes=14_000)
END_OFFSET = 798
ABORTED = [
    AbortedTransaction(5, 758, 765, 766),
    AbortedTransaction(5, 774, 781, 782),
    AbortedTransaction(5, 790, 797, 798),
]


def place(directory: Path) -> LogPlace:
    return LogPlace(LogDirectory(str(directory), Disk(LocalFileSystem())), "t3", 0)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "t3-0").iterdir()}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.parametrize("was_clean", [True, False])
def test_apaches_log_is_read_whole_and_closed_to_the_same_bytes(
    copy: Path, was_clean: bool
) -> None:
    log, outcome = load_log(
        place(copy), CONFIG, LogSettings(), LoadHints(was_clean, high_watermark=END_OFFSET)
    )

    assert outcome.notes == []
    assert all_offsets(log) == list(range(END_OFFSET))
    assert log.aborted_transactions(0, END_OFFSET) == ABORTED
    assert sorted(log.producers.producers) == [0, 1, 2, 3, 4, 5]
    assert log.last_stable_offset == END_OFFSET
    log.close()
    assert files(copy) == files(GOLDEN)


def test_our_log_of_the_same_batches_has_apaches_bytes(copy: Path, tmp_path: Path) -> None:
    apaches, _ = load_log(place(copy), CONFIG, LogSettings(), LoadHints(was_clean=True))
    ours = create_log(place(tmp_path), CONFIG, LogSettings(), NOW_MS)

    for stored in apaches.read_batches(0, END_OFFSET):
        data = bytearray(stored)
        header = parse_header(data)
        data[:8] = bytes(8)
        origin = FROM_COORDINATOR if header.is_control else FROM_CLIENT
        ours.append_as_leader(
            memoryview(data), header.partition_leader_epoch, header.max_timestamp, origin
        )
        ours.advance_high_watermark(ours.log_end_offset)
    ours.close()

    expected = files(GOLDEN)
    del expected["partition.metadata"]
    assert files(tmp_path) == expected


def test_whole_directory_of_apache_is_opened(copy: Path) -> None:
    stored = (copy / "meta.properties").read_text()
    properties = dict(line.split("=") for line in stored.splitlines() if "=" in line)
    path = copy / "meta.properties"
    path.write_text(stored.replace(properties["cluster.id"], "cluster"))
    path.write_text(path.read_text().replace("broker.id=0", "broker.id=1"))

    directories = open_directories(copy)
    report = directories.load(lambda _topic: CONFIG)

    assert (report.logs, report.unclean_directories) == (1, [])
    # The golden directory has one partition of those that its checkpoints tell of.
    assert all(" is missing, though " in note for note in report.notes), report.notes
    assert not any("t3-0" in note for note in report.notes)
    log = directories.get("t3", 0)
    assert log is not None
    assert log.high_watermark == log.recovery_point == END_OFFSET
