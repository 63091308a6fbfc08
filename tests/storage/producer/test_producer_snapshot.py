"""Bytes of `.snapshot` and `.txnindex` files, as Apache Kafka 3.9.1 wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import DamagedFileError
from storage.filesystem import LocalFileSystem
from storage.producer.producer_snapshot import SnapshotEntry, decode, encode
from storage.segment.aborted_index import AbortedIndex, AbortedTransaction

ENTRY = SnapshotEntry(1000, 3, 62, 62, 0, 1_795_229_963_862, 5, -1)
GOLDEN = Path(__file__).parents[2] / "golden" / "disk" / "t3-0"


@pytest.mark.parametrize("name", [f"{481:020d}.snapshot", f"{798:020d}.snapshot"])
def test_bytes_are_apaches(name: str) -> None:
    data = (GOLDEN / name).read_bytes()

    entries = decode(data)

    assert len(entries) == (len(data) - 10) // 46 > 3
    assert encode(entries) == data
    assert decode(encode([ENTRY])) == [ENTRY]


def test_no_producers_are_ten_bytes() -> None:
    assert len(encode([])) == 10
    assert decode(encode([])) == []


@pytest.mark.parametrize("position", [0, 3, 8, 20, 55])
def test_any_changed_byte_is_noticed(position: int) -> None:
    data = bytearray(encode([ENTRY]))
    data[position] ^= 1

    with pytest.raises(DamagedFileError):
        decode(bytes(data))


@pytest.mark.parametrize("size", [0, 5, 9, 30, 55, 57])
def test_any_other_size_is_noticed(size: int) -> None:
    with pytest.raises(DamagedFileError):
        decode((encode([ENTRY]) + b"\0")[:size])


def test_aborted_index_is_thirty_four_bytes_an_entry(tmp_path: Path) -> None:
    index = AbortedIndex(LocalFileSystem(), str(tmp_path), 24)
    assert index.entries() == []
    entries = [AbortedTransaction(1000, 24, 31, 32), AbortedTransaction(1001, 40, 44, 45)]

    for entry in entries:
        index.append(entry)

    assert (tmp_path / f"{24:020d}.txnindex").read_bytes()[:34] == bytes.fromhex(
        "000000000000000003e80000000000000018000000000000001f0000000000000020"
    )  # fmt: skip
    assert index.entries() == entries
    index.prepare_truncation(44)()
    assert index.entries() == entries[:1]


def test_damaged_aborted_index_is_noticed(tmp_path: Path) -> None:
    index = AbortedIndex(LocalFileSystem(), str(tmp_path), 0)
    path = tmp_path / f"{0:020d}.txnindex"

    path.write_bytes(b"\0" * 33)
    with pytest.raises(DamagedFileError):
        index.entries()
    path.write_bytes(b"\1" * 34)
    with pytest.raises(DamagedFileError):
        index.entries()
