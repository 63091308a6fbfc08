"""The leader epoch cache and its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage.disk import Disk
from storage.errors import DamagedFileError
from storage.filesystem import LocalFileSystem
from storage.log.leader_epochs import LeaderEpochs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(Disk(LocalFileSystem()), str(tmp_path))
    for epoch, start in ((2, 10), (4, 30), (7, 55)):
        epochs.assign(epoch, start)
    return epochs


def test_file_is_apaches(epochs: LeaderEpochs, tmp_path: Path) -> None:
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n2 10\n4 30\n7 55\n"
    again = LeaderEpochs(Disk(LocalFileSystem()), str(tmp_path))
    again.load()
    assert again.entries() == epochs.entries()


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (7, (7, 99)),  # the latest ends at the log end
        (8, (-1, -1)),  # newer than all
        (-1, (-1, -1)),
        (1, (1, 10)),  # older than all
        (2, (2, 30)),
        (3, (2, 30)),  # the greatest that is not newer
        (4, (4, 55)),
        (6, (4, 55)),
    ],
)
def test_end_offset_of_an_epoch_is_where_the_next_began(
    epochs: LeaderEpochs, asked: int, answer: tuple[int, int]
) -> None:
    assert epochs.end_offset(asked, 99) == answer


def test_end_offset_without_epochs_is_undefined(tmp_path: Path) -> None:
    epochs = LeaderEpochs(Disk(LocalFileSystem()), str(tmp_path))

    assert epochs.end_offset(0, 5) == (-1, -1)
    assert epochs.latest == -1


@pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 2), (29, 2), (30, 4), (1000, 7)])
def test_epoch_at_an_offset(epochs: LeaderEpochs, offset: int, epoch: int) -> None:
    assert epochs.epoch_at(offset) == epoch


def test_assigning_the_latest_again_changes_nothing(epochs: LeaderEpochs) -> None:
    epochs.assign(7, 80)

    assert epochs.entries() == [(2, 10), (4, 30), (7, 55)]


def test_assigning_drops_what_it_contradicts(epochs: LeaderEpochs) -> None:
    epochs.assign(9, 30)

    assert epochs.entries() == [(2, 10), (9, 30)]


def test_truncation_from_both_ends(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_end(56)
    assert epochs.entries() == [(2, 10), (4, 30), (7, 55)]
    epochs.truncate_from_end(55)
    assert epochs.entries() == [(2, 10), (4, 30)]
    epochs.truncate_from_start(20)
    assert epochs.entries() == [(2, 20), (4, 30)]
    epochs.truncate_from_start(30)
    assert epochs.entries() == [(4, 30)]
    epochs.truncate_from_start(5)
    assert epochs.entries() == [(4, 30)]
    epochs.clear()
    assert epochs.entries() == []


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n2\n1 1\n", "0\n1\n1\n", "0\n1\nx 1\n", "0\nx\n", "\udcff"]
)
def test_damage_is_noticed(tmp_path: Path, text: str) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(DamagedFileError):
        LeaderEpochs(Disk(LocalFileSystem()), str(tmp_path)).load()
