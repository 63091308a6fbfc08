"""Starts with any file of a data directory damaged, in any way.

They go on and lose nothing that was acknowledged, or end with one line that names the file; there
is never a traceback.
"""

from __future__ import annotations

import logging
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from broker.__main__ import main
from controller.metadata_store.embedded_store import JOURNAL_NAME, SNAPSHOT_NAME
from protocol.records.control import ControlType
from storage.errors import LogDirectoryError
from storage.segment import file_names
from tests.broker.test_start import stop_at_once
from tests.storage.produced import (
    SMALL,
    TOPIC_ID,
    Producer,
    all_offsets,
    append,
    append_marker,
    batch,
    marker,
    open_directories,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECORDS = 60
JUNK = random.Random(1).randbytes(300)
MARK = file_names.CLEAN_SHUTDOWN
OF_DIRECTORY = [
    "meta.properties",
    MARK,
    file_names.CLOSED_LOGS,
    file_names.RECOVERY_POINTS,
    file_names.LOG_STARTS,
    file_names.HIGH_WATERMARKS,
    file_names.CLEANER_OFFSETS,
    JOURNAL_NAME,
    SNAPSHOT_NAME,
]
OF_LOG = [
    "partition.metadata",
    file_names.LEADER_EPOCHS,
    *("first.log", "first.index", "first.timeindex", "first.txnindex", "first.delays"),
    *("last.log", "last.index", "last.timeindex", "last.txnindex", "last.delays", "last.snapshot"),
]
"""The first or the last of its kind."""


def _replaced(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _as_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def _as_loop(path: Path) -> None:
    """A link to itself, which not even root can read."""
    path.unlink(missing_ok=True)
    path.symlink_to(path)


DAMAGES: dict[str, Callable[[Path, bytes], None]] = {
    "empty": lambda path, _: _replaced(path, b""),
    "zeros appended": lambda path, old: _replaced(path, old + bytes(200)),
    "few zeros appended": lambda path, old: _replaced(path, old + bytes(30)),
    "zeros instead": lambda path, old: _replaced(path, bytes(len(old))),
    "zeros at the end": lambda path, old: _replaced(path, _half(old).ljust(len(old), b"\0")),
    "cut": lambda path, old: _replaced(path, _half(old)),
    "one byte cut": lambda path, old: _replaced(path, old[:-1]),
    "junk": lambda path, _: _replaced(path, JUNK),
    "junk appended": lambda path, old: _replaced(path, old + JUNK),
    "missing": lambda path, _: path.unlink(missing_ok=True),
    "directory": lambda path, _: _as_directory(path),
    "unreadable": lambda path, _: _as_loop(path),
}
OF_TEXT: dict[str, Callable[[Path, bytes], None]] = {
    "byte order mark": lambda path, old: _replaced(path, b"\xef\xbb\xbf" + old),
    "line ends of Windows": lambda path, old: _replaced(path, old.replace(b"\n", b"\r\n")),
    "digits that are none": lambda path, old: _replaced(path, old.replace(b"0", "²".encode())),
    "endless number": lambda path, old: _replaced(path, old.replace(b"0", b"9" * 5000)),
    "negative number": lambda path, old: _replaced(path, old.replace(b" 0", b" -5")),
}
TEXTS = ("meta.properties", "partition.metadata", "checkpoint")


class Case:
    """Copies of one data directory, damaged one after the other."""

    def __init__(self, template: Path, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.template = template
        self.data = directory / "data"
        self._config = _config(directory, self.data)
        self._capsys = capsys

    def start(self, name: str, damage: Callable[[Path, bytes], None], *, is_clean: bool) -> str:
        """Start with one file damaged; returns the line with which that ended, "" for none."""
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.copytree(self.template, self.data)
        if is_clean:  # leaves what is known of logs, which a copy has not
            assert main(["--config", self._config]) == 0
        else:
            (self.data / MARK).unlink()
        path = _file(self.data, name)
        damage(path, path.read_bytes() if path.is_file() else b"")
        return self.again()

    def again(self) -> str:
        """Start with what there is; returns as `start`."""
        self._capsys.readouterr()
        code = main(["--config", self._config])
        lines = self._capsys.readouterr().err.splitlines()
        assert len(lines) == code, lines
        return lines[0] if lines else ""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that a broker has closed in order."""
    directory = tmp_path_factory.mktemp("template")
    logs = open_directories(directory / "data")
    logs.load(lambda _topic: SMALL)
    log = logs.create("flights", 0, TOPIC_ID, SMALL)
    for number in range(RECORDS // 6):
        append(log, batch(5, producer=Producer(7, 0, number * 5, is_transactional=True)))
        append_marker(log, marker(Producer(7), ControlType.ABORT))
    logs.close()
    with pytest.MonkeyPatch.context() as patch:
        stop_at_once(patch)
        assert main(["--config", _config(directory, directory / "data")]) == 0
    return directory / "data"


@pytest.fixture
def case(
    template: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Case:
    stop_at_once(monkeypatch)
    return Case(template, tmp_path, capsys)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("name", [*OF_DIRECTORY, *OF_LOG])
def test_damaged_file_is_named_or_costs_nothing(
    case: Case, name: str, is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    damages = {**DAMAGES, **(OF_TEXT if name.endswith(TEXTS) else {})}
    for damage, apply in damages.items():
        caplog.clear()
        line = case.start(name, apply, is_clean=is_clean)
        assert not [one.message for one in caplog.records if one.exc_info], damage
        if line:
            assert str(case.data) in line, damage
            continue
        told = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
        if name == "first.log":
            continue  # a start looks at its end; who fetches what else is damaged is told
        found = _offsets(case.data)
        if isinstance(found, str):  # nor all of its indexes
            assert _file(case.data, name).name in found, damage
        elif found != list(range(RECORDS)):
            assert not is_clean, (damage, told)
            assert any("/flights-0/" in one for one in told), (damage, told)


@pytest.mark.parametrize("damage", ["zeros appended", "few zeros appended", "junk appended"])
def test_tail_behind_a_log_is_cut_off_after_a_clean_stop(
    case: Case, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    size = _file(case.template, "last.log").stat().st_size

    assert case.start("last.log", DAMAGES[damage], is_clean=True) == ""

    path = _file(case.data, "last.log")
    cut = {"zeros appended": 200, "few zeros appended": 30, "junk appended": len(JUNK)}[damage]
    told = f"flights-0: {cut} bytes cut from the end of {path}, from offset {RECORDS} on: "
    assert any(one.startswith(told) for one in caplog.messages)
    assert path.stat().st_size == size


@pytest.mark.parametrize("damage", ["empty", "cut", "zeros at the end"])
def test_start_is_refused_as_often_as_flushed_records_are_gone(case: Case, damage: str) -> None:
    line = case.start("last.log", DAMAGES[damage], is_clean=True)

    path = _file(case.data, "last.log")
    assert line.startswith(f"{path}: ")
    assert f"though records up to offset {RECORDS - 1} were written" in line
    assert line.endswith(f"or remove {case.data}/{MARK} to go on with what stands before")
    assert case.again() == line
    (case.data / MARK).unlink()
    assert case.again() == ""


def _config(directory: Path, data: Path) -> str:
    path = directory / "server.properties"
    path.write_text(f"broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={data}\n")
    return str(path)


def _file(data: Path, name: str) -> Path:
    """A file by its name, or by its place among those of its kind."""
    if name in OF_DIRECTORY:
        return data / name
    log = data / "flights-0"
    which, _, suffix = name.partition(".")
    if which not in ("first", "last"):
        return log / name
    of_logs = sorted(log.glob("*.log"))
    found = sorted(log.glob(f"*.{suffix}")) or [of_logs[-1].with_suffix(f".{suffix}")]
    return found[0 if which == "first" else -1]


def _offsets(data: Path) -> list[int] | str:
    """Return the offsets of all records as the next broker finds them, or its error."""
    logs = open_directories(data)
    logs.load(lambda _topic: SMALL)
    try:
        return [offset for log in logs for offset in all_offsets(log)]
    except LogDirectoryError as error:
        return error.message
    finally:
        logs.close()
