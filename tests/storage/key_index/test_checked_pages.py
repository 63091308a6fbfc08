"""Pages with checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.errors import DamagedFileError
from storage.filesystem import LocalFileSystem
from storage.key_index.checked_pages import CONTENT_BYTES, PAGE_BYTES, CheckedPages, PageWriter

if TYPE_CHECKING:
    from pathlib import Path

DISK = LocalFileSystem()


def written(path: Path, content: bytes) -> CheckedPages:
    path.unlink(missing_ok=True)
    writer = PageWriter(DISK.open(str(path), create=True))
    assert writer.position == CONTENT_BYTES
    writer.append(content)
    size = writer.size
    writer.finish(b"first")
    assert path.stat().st_size == size
    return CheckedPages(DISK.open(str(path)), str(path))


@settings(max_examples=50)
@given(st.data())
def test_any_byte_range_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytes(index * 7 % 251 for index in range(data.draw(st.integers(1, 20_000))))
    pages = written(tmp_path_factory.mktemp("pages") / "file", content)
    start = data.draw(st.integers(0, len(content) - 1))
    length = data.draw(st.integers(1, len(content) - start))

    assert pages.read(CONTENT_BYTES + start, length) == content[start : start + length]
    assert pages.read(0, 5) == b"first"


@pytest.mark.parametrize("position", [0, CONTENT_BYTES - 1, CONTENT_BYTES, PAGE_BYTES - 1])
def test_a_bit_that_changed_is_noticed_wherever_in_the_page_it_is(
    tmp_path: Path, position: int
) -> None:
    path = tmp_path / "file"
    pages = written(path, bytes(10_000))
    data = bytearray(path.read_bytes())
    data[PAGE_BYTES + position] ^= 4
    path.write_bytes(data)

    with pytest.raises(DamagedFileError, match="page 1 is damaged"):
        pages.read(CONTENT_BYTES + 7, 10)
    assert pages.read(2 * CONTENT_BYTES, 10) == bytes(10)


def test_pages_that_were_exchanged_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    pages = written(path, b"a" * CONTENT_BYTES + b"b" * CONTENT_BYTES)
    data = path.read_bytes()
    first, second = data[PAGE_BYTES : 2 * PAGE_BYTES], data[2 * PAGE_BYTES :]
    path.write_bytes(data[:PAGE_BYTES] + second + first)

    with pytest.raises(DamagedFileError, match="page 1 is damaged"):
        pages.read(CONTENT_BYTES, 1)


@pytest.mark.parametrize("size", [0, 1, PAGE_BYTES - 1, PAGE_BYTES, 2 * PAGE_BYTES - 1])
def test_a_file_that_is_cut_off_is_noticed(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    pages = written(path, bytes(10_000))
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(DamagedFileError, match="is missing"):
        pages.read(CONTENT_BYTES, 1)


def test_a_file_whose_writer_died_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writer = PageWriter(DISK.open(str(path), create=True))
    writer.append(bytes(2 << 20))

    with pytest.raises(DamagedFileError, match="page 0 is damaged"):
        CheckedPages(DISK.open(str(path)), str(path)).read(0, 8)
