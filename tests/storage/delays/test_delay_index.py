"""The `.delays` of a segment: found, cut, and made sound again after a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage.delays.delay_index import (
    ENTRIES_SEARCHED,
    ENTRY,
    DelayEntry,
    DelayIndex,
    DelayKind,
)
from storage.errors import DamagedFileError
from storage.filesystem import LocalFileSystem

if TYPE_CHECKING:
    from pathlib import Path

BASE = 100
COUNTS = [0, 1, 63, 64, 65, 700, ENTRIES_SEARCHED + 70]


def entry(number: int) -> DelayEntry:
    kind = DelayKind.DELIVERED if number % 10 == 3 else DelayKind.WAITING
    return DelayEntry(BASE + 2 * number, 70 * number, kind, 1000 + number)


def index_of(directory: Path, count: int) -> DelayIndex:
    index = DelayIndex(LocalFileSystem(), str(directory), BASE)
    for number in range(count):
        index.append(entry(number))
    return index


def entries(index: DelayIndex, offset: int = 0) -> list[DelayEntry]:
    return list(index.entries_from(offset))


@pytest.mark.parametrize("count", COUNTS)
def test_entries_are_found_whether_written_or_not(tmp_path: Path, count: int) -> None:
    index = index_of(tmp_path, count)
    expected = [entry(number) for number in range(count)]

    assert len(index) == count
    for offset in (0, BASE, BASE + 1, BASE + count, BASE + 2 * count, BASE + 9999):
        assert entries(index, offset) == [one for one in expected if one.offset >= offset]
        delivered = [
            one for one in expected if one.offset < offset and one.kind is DelayKind.DELIVERED
        ]
        assert index.last_of(DelayKind.DELIVERED, offset) == (delivered[-1] if delivered else None)


@pytest.mark.parametrize("count", COUNTS)
def test_written_entries_are_read_by_the_next_process(tmp_path: Path, count: int) -> None:
    index = index_of(tmp_path, count)
    index.write_pending()

    found = DelayIndex(LocalFileSystem(), str(tmp_path), BASE, count * ENTRY.size)

    assert entries(found) == entries(index)
    found.append(entry(count))
    assert entries(found)[-1] == entry(count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("cut", [0, 1, 60, 64, 70])
def test_truncation_drops_entries_from_an_offset_on(tmp_path: Path, count: int, cut: int) -> None:
    index = index_of(tmp_path, count)

    index.prepare_truncation(BASE + 2 * cut, lambda _: True)()

    expected = [entry(number) for number in range(min(cut, count))]
    assert entries(index) == expected
    index.append(entry(800))
    index.write_pending()
    assert entries(index) == [*expected, entry(800)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + bytes(100),
        lambda data: data + data[:48],
        lambda data: data[:240] + bytes(24) + data[264:],
        lambda data: data[:239] + b"\xff" * 24 + data[263:],
        lambda _: b"",
    ],
)
def test_after_a_crash_it_is_sound_up_to_where_recovery_reads(
    tmp_path: Path, damage: object
) -> None:
    index = index_of(tmp_path, 20)
    index.write_pending()
    path = tmp_path / f"{BASE:020d}.delays"
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    index = DelayIndex(LocalFileSystem(), str(tmp_path), BASE, path.stat().st_size)

    index.salvage(70 * 15)

    kept = entries(index)
    assert kept == [entry(number) for number in range(len(kept))]
    assert len(kept) <= 15
    assert path.stat().st_size == len(kept) * ENTRY.size


def test_an_impossible_entry_is_damage(tmp_path: Path) -> None:
    index = index_of(tmp_path, 2)
    index.write_pending()
    path = tmp_path / f"{BASE:020d}.delays"
    data = bytearray(path.read_bytes())
    data[ENTRY.size + 15] = 77
    path.write_bytes(data)

    with pytest.raises(DamagedFileError):
        entries(index)
