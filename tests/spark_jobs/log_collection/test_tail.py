"""Following a log through rotation and restarts: every line once, in order."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.log_collection.log_files import files_of, logs_of
from spark_jobs.log_collection.log_positions import Position
from spark_jobs.log_collection.tail import TailedLog, Tailing

if TYPE_CHECKING:
    from collections.abc import Iterator

LATER = 1e12
"""A time at which every file has settled."""


class Log:
    """A log in a directory, what was written to it, and what was read of it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "app.log"
        self.path.touch()
        self.written: list[bytes] = []
        self.read: list[bytes] = []
        self.told: list[str] = []
        self._positions = "[]"
        self._tailed: TailedLog | None = None

    def write(self, *lines: bytes) -> None:
        with self.path.open("ab") as file:
            file.writelines(line + b"\n" for line in lines)
        self.written += lines

    def append(self, piece: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(piece)

    def collect(self, most: int | None = None, now: float = LATER) -> None:
        """Read what is there, or `most` lines, and note positions with them."""
        if self._tailed is None:
            found = [Position.from_json(each) for each in json.loads(self._positions)]
            self._tailed = TailedLog(self.path, found, Tailing(tell=self.told.append))
        lines = self._tailed.lines(now)
        for number, line in enumerate(lines, start=1):
            self.read.append(line.value)
            if number == most:
                break
        self._positions = json.dumps([each.to_json() for each in self._tailed.positions()])

    def restart(self) -> None:
        """Forget all but the positions that were noted."""
        if self._tailed is not None:
            self._tailed.close()
        self._tailed = None

    def rename(self, mode: str = "rename") -> None:
        """Rotate, as logrotate does."""
        for number in range(9, 0, -1):
            for ending in ("", ".gz"):
                old = self.path.with_name(f"app.log.{number}{ending}")
                if old.exists():
                    old.rename(self.path.with_name(f"app.log.{number + 1}{ending}"))
        newest = self.path.with_name("app.log.1")
        if mode == "copytruncate":
            shutil.copyfile(self.path, newest)
            self.path.write_bytes(b"")
        else:
            self.path.rename(newest)
            self.path.touch()

    def compress(self) -> None:
        for path in [*self.path.parent.glob("app.log.*")]:
            if path.suffix != ".gz":
                with gzip.open(f"{path}.gz", "wb") as packed:
                    packed.write(path.read_bytes())
                path.unlink()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    found = Log(tmp_path)
    yield found
    found.restart()


def test_a_line_without_an_end_is_left_until_it_has_one(log: Log) -> None:
    log.write(b"one")
    log.append(b"tw")
    log.collect()
    assert log.read == [b"one"]
    log.restart()
    log.append(b"o\nthree")
    log.collect()
    assert log.read == [b"one", b"two"]


def test_the_last_line_of_a_rotated_file_needs_no_end(log: Log) -> None:
    log.write(b"one")
    log.append(b"two")
    log.rename()
    log.write(b"three")
    log.collect()
    assert log.read == [b"one", b"two", b"three"]


def test_a_rotated_file_is_waited_for_until_nobody_writes_to_it(log: Log) -> None:
    log.write(b"one")
    log.collect()
    with log.path.open("ab") as held_open:
        log.rename()
        log.write(b"three")
        modified = log.path.with_name("app.log.1").stat().st_mtime
        log.collect(now=modified + 1)
        held_open.write(b"two\n")
    modified = log.path.with_name("app.log.1").stat().st_mtime
    log.collect(now=modified + 1)
    assert log.read == [b"one", b"two"]
    log.collect(now=modified + 6)
    assert log.read == [b"one", b"two", b"three"]


def test_what_comes_even_later_into_a_rotated_file_is_read_too(log: Log) -> None:
    log.write(b"one")
    log.rename()
    log.write(b"two")
    log.collect()
    with log.path.with_name("app.log.1").open("ab") as late:
        late.write(b"late\n")
    log.collect()
    log.restart()
    log.collect()
    assert log.read == [b"one", b"two", b"late"]


def test_bytes_are_kept_as_they_are(log: Log) -> None:
    lines = [b"Z\xfcrich", b"\x00\xff", b"a\rb\r", b"\xe2\x82"]
    log.write(*lines)
    log.collect()
    assert log.read == lines


def test_a_long_line_comes_in_pieces_and_an_empty_one_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"x" * 2500 + b"\n\n" + b"y" * 1000 + b"\nz\n")
    tailed = TailedLog(path, [], Tailing(most_line_bytes=1000))
    lines = [(len(line.value), line.offset, line.is_continued) for line in tailed.lines(LATER)]
    tailed.close()
    assert lines == [
        (1000, 0, True),
        (1000, 1000, True),
        (500, 2000, False),
        (1000, 2502, False),
        (1, 3503, False),
    ]


def test_a_line_that_never_ends_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"x" * 10_000)
    tailed = TailedLog(path, [], Tailing(most_line_bytes=1000))
    assert [len(line.value) for line in tailed.lines(LATER)] == [1000] * 9
    tailed.close()


def test_what_was_read_of_a_file_that_is_deleted_meanwhile_is_not_lost(log: Log) -> None:
    log.write(b"one")
    log.collect()
    log.write(b"two")
    log.path.unlink()
    log.write(b"three")
    log.collect()
    assert log.read == [b"one", b"two", b"three"]
    assert log.told == []


def test_a_file_that_vanished_while_nobody_looked_is_told(log: Log) -> None:
    log.write(b"one")
    log.collect()
    log.restart()
    log.path.unlink()
    log.collect()
    assert len(log.told) == 1
    assert log.told[0].startswith(f"{log.path}: the file of which 4 bytes were read is gone; ")
    log.write(b"two")
    log.collect()
    assert log.read == [b"one", b"two"]


def test_a_file_that_is_rewritten_is_read_from_its_beginning_and_told(log: Log) -> None:
    log.write(b"one", b"two")
    log.collect()
    log.path.write_bytes(b"six\nseven\neight\n")
    log.collect()
    assert log.read == [b"one", b"two", b"six", b"seven", b"eight"]
    assert len(log.told) == 1
    assert log.told[0].startswith(f"{log.path}: cut or rewritten after 8 bytes were read, ")


def test_more_can_have_been_read_of_a_file_than_its_copy_has(log: Log) -> None:
    log.write(b"one", b"two")
    shutil.copyfile(log.path, log.path.with_name("app.log.1"))
    log.write(b"three")
    log.collect()
    assert log.read == [b"one", b"two", b"three"]
    log.path.write_bytes(b"")
    log.write(b"four")
    for _ in range(2):
        log.collect()
        log.restart()
    assert log.read == log.written
    assert log.told == []


def test_a_damaged_compressed_file_is_read_as_far_as_it_goes(log: Log) -> None:
    lines = [random.Random(number).randbytes(40).hex().encode() for number in range(20_000)]
    packed = gzip.compress(b"\n".join(lines))
    log.path.with_name("app.log.1.gz").write_bytes(packed[: len(packed) // 2])
    log.write(b"new")
    for _ in range(3):
        log.collect()
        log.restart()
    read = len(log.read) - 1
    assert 5_000 < read < 15_000
    assert log.read == [*lines[:read], b"new"]
    assert len(log.told) >= 1


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_file_whose_name_is_anothers_meanwhile_is_not_opened(ending: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"new")
    rotated = tmp_path / f"a.log.1{ending}"
    rotated.write_bytes(gzip.compress(b"old") if ending else b"old")
    old, _ = files_of(tmp_path / "a.log")
    rotated.rename(tmp_path / f"a.log.2{ending}")
    rotated.write_bytes(b"another")
    with pytest.raises(FileNotFoundError, match="was rotated just now"):
        old.open()


def test_files_that_are_renamed_while_they_are_listed_are_all_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.log"
    for name in ("a.log", "a.log.1", "a.log.2", "a.log.3"):
        (tmp_path / name).write_bytes(name.encode())
    looked: list[str] = []
    stat = Path.stat

    def rotate_meanwhile(path: Path, **more: Any) -> Any:
        found = stat(path, **more)
        looked.append(path.name)
        if len(looked) == 2:
            for number in (3, 2, 1):
                (tmp_path / f"a.log.{number}").rename(tmp_path / f"a.log.{number + 1}")
            log.rename(tmp_path / "a.log.1")
            log.touch()
        return found

    monkeypatch.setattr(Path, "stat", rotate_meanwhile)
    contents = [file.path.read_bytes() for file in files_of(log)]
    assert contents == [b"a.log.3", b"a.log.2", b"a.log.1", b"a.log", b""]


def test_files_of_a_log_are_ordered_from_the_oldest(tmp_path: Path) -> None:
    names = ["a.log.10.gz", "a.log.2.gz", "a.log.1", "a.log"]
    for name in (*names, "a.log.1.gz", "a.log.old", "ba.log.1", "a.log.d"):
        (tmp_path / name).touch()
    (tmp_path / "a.log.3").mkdir()
    assert [file.path.name for file in files_of(tmp_path / "a.log")] == names
    dated = ["b.log-20250101.gz", "b.log-20250102", "b.log"]
    for name in dated:
        (tmp_path / name).touch()
    assert [file.path.name for file in files_of(tmp_path / "b.log")] == dated
    logs = ["a.log", "a.log.d", "a.log.old", "b.log", "ba.log"]
    assert [path.name for path in logs_of([f"{tmp_path}/*"])] == logs


@pytest.mark.parametrize("seed", range(60))
def test_whatever_rotation_does_and_whenever_one_restarts_each_line_is_read_once(
    seed: int, log: Log
) -> None:
    """Given a log with no two lines alike, when it is rotated in every way, then all is in order.

    The steps are drawn from the seed; half of the logs begin with the same banner each time.
    """
    draw = random.Random(seed)
    mode = draw.choice(["rename", "copytruncate"])
    banner = b"#" * draw.choice([0, 10, 300]) if seed % 2 else b""
    number = 0
    for _ in range(60):
        step = draw.choice(["write", "write", "collect", "some", "restart", "rotate", "compress"])
        if step == "write":
            if banner and log.path.stat().st_size == 0:
                log.write(banner + b"%d" % number)
            for _ in range(draw.choice([1, 3, 200])):
                number += 1
                log.write(b"%d: %s" % (number, b"." * draw.choice([0, 5, 300])))
        elif step == "collect":
            log.collect()
        elif step == "some":
            log.collect(most=draw.randint(1, 100))
        elif step == "restart":
            log.restart()
        elif step == "rotate" and log.path.stat().st_size:
            log.rename(mode)
        elif step == "compress":
            log.compress()
    log.collect()
    log.restart()
    log.collect()
    log.restart()
    assert log.read == log.written
    assert log.told == []


def test_positions_of_many_logs_stay_small(log: Log) -> None:
    for number in range(40):
        log.write(b"%d" % number)
        log.collect()
        log.path.rename(log.path.with_name(f"app.log-202501{number:02}"))
        log.path.touch()
    log.write(b"last")
    log.collect()
    log.restart()
    log.collect()
    log.restart()
    assert log.read == log.written
    assert len(json.loads(log._positions)) == 16
