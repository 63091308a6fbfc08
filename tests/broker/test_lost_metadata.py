"""Starts of a broker that has been here before, and whose metadata of topics is not there."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING

import pytest

from broker.__main__ import main
from controller.metadata_store.embedded_store import JOURNAL_NAME
from tests.broker.test_start import stop_at_once
from tests.storage.produced import SMALL, TOPIC_ID, append, batch, open_directories

if TYPE_CHECKING:
    from pathlib import Path

AUTHORIZER = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
    "super.users=User:admin\n"
)


class Starts:
    """Starts of brokers that stop as soon as they serve."""

    def __init__(
        self, directory: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        self._directory = directory
        self._capsys = capsys
        self._caplog = caplog

    def start(self, *log_dirs: Path, properties: str = "") -> tuple[str, list[str]]:
        """The line with which the start ended, "" for none, and its warnings and errors."""
        config = self._directory / "server.properties"
        paths = ",".join(map(str, log_dirs))
        config.write_text(
            f"broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={paths}\n{properties}"
        )
        self._caplog.clear()
        code = main(["--config", str(config)])
        lines = self._capsys.readouterr().err.splitlines()
        assert len(lines) == code, lines
        told = [one.getMessage() for one in self._caplog.records if one.levelno >= logging.WARNING]
        return "".join(lines), told


@pytest.fixture
def starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Starts:
    stop_at_once(monkeypatch)
    return Starts(tmp_path, capsys, caplog)


@pytest.fixture
def data(tmp_path: Path, starts: Starts) -> Path:
    """A log directory that a broker with a topic has used and closed in order."""
    data = tmp_path / "data"
    logs = open_directories(data)
    logs.load(lambda _topic: SMALL)
    append(logs.create("flights", 0, TOPIC_ID, SMALL), batch(5))
    logs.close()
    (data / "meta.properties").unlink()
    assert starts.start(data) == ("", [])
    return data


def test_metadata_in_a_directory_that_is_offline_is_not_replaced_by_an_empty_one(
    starts: Starts, data: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (data / ".lock").unlink()
    (data / ".lock").mkdir()  # cannot be locked, as where the disk is read-only

    line, _ = starts.start(data, other)

    assert f"it must be in {data}, which cannot be" in line
    assert not (other / JOURNAL_NAME).exists()


def test_a_first_start_goes_on_without_a_directory_that_cannot_be_used(
    starts: Starts, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_text("no directory")

    line, _ = starts.start(tmp_path / "bad", tmp_path / "good")

    assert line == ""
    assert (tmp_path / "good" / JOURNAL_NAME).exists()


def test_a_missing_journal_is_named_with_what_is_lost(starts: Starts, data: Path) -> None:
    (data / JOURNAL_NAME).unlink()

    line, (told,) = starts.start(data)

    assert line == ""
    assert told.startswith(f"{data}/{JOURNAL_NAME} is missing in log directories of cluster ")
    assert "topics are imported without their configurations" in told
    assert "no quotas, SCRAM users, ACLs" in told
    assert starts.start(data) == ("", [])


def test_a_missing_journal_without_logs_is_no_error(starts: Starts, data: Path) -> None:
    """A directory formatted by `kafka-storage` looks like that."""
    shutil.rmtree(data / "flights-0")
    (data / "recovery-point-offset-checkpoint").unlink()
    (data / JOURNAL_NAME).unlink()

    assert starts.start(data) == ("", [])


def test_a_lost_journal_with_allow_everyone_if_no_acl_found_refuses_the_start(
    starts: Starts, data: Path
) -> None:
    (data / JOURNAL_NAME).unlink()
    everybody = AUTHORIZER + "allow.everyone.if.no.acl.found="

    for _ in range(2):
        line, _ = starts.start(data, properties=f"{everybody}true\n")
        assert line.startswith(f"{data}/{JOURNAL_NAME} is missing")
        assert "set allow.everyone.if.no.acl.found=false until they are created again" in line
    assert not (data / JOURNAL_NAME).exists()
    line, told = starts.start(data, properties=f"{everybody}false\n")
    assert line == ""
    assert any("there are no quotas, SCRAM users, ACLs" in one for one in told)


def test_damaged_metadata_fails_the_start_with_a_remedy(starts: Starts, data: Path) -> None:
    (data / JOURNAL_NAME).write_bytes(b"junk" * 100)

    line, _ = starts.start(data)

    assert line.startswith(f"{data}: {JOURNAL_NAME} is damaged: ")
    assert f"restore {JOURNAL_NAME} and " in line
    (data / JOURNAL_NAME).unlink()
    assert starts.start(data)[0] == ""


def test_damaged_meta_properties_fail_the_start_with_a_remedy(starts: Starts, data: Path) -> None:
    path = data / "meta.properties"
    content = path.read_bytes()
    path.write_bytes(b"junk")

    line, _ = starts.start(data)

    assert line.startswith(f"{path} is damaged: ")
    assert "restore it, or remove it" in line
    path.unlink()
    assert starts.start(data) == ("", [])
    assert path.read_bytes().splitlines()[2:] == content.splitlines()[2:]
