"""The disk's adapter: what has no other test, since nothing that is stored shows it."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import TYPE_CHECKING

import pytest

from storage import filesystem
from storage.filesystem import LocalFile, LocalFileSystem

if TYPE_CHECKING:
    from pathlib import Path


def test_written_out_bytes_are_there_and_their_file_can_grow(tmp_path: Path) -> None:
    file = LocalFileSystem().open(str(tmp_path / "file"), create=True)
    file.write_at(0, b"a" * 10_000)
    file.begin_write_out(0, 10_000)
    file.write_out(0, 10_000)
    file.write_at(10_000, b"b")
    file.write_out(10_000, 1)
    assert file.read_at(0, 20_000) == b"a" * 10_000 + b"b"


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_where_the_system_does_not_let_it_be_written_out_it_is_made_durable(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> int:
        ctypes.set_errno(number)
        return -1

    synced: list[int] = []
    monkeypatch.setattr(filesystem, "_sync_file_range", refuse)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    file = LocalFileSystem().open(str(tmp_path / "file"), create=True)
    file.write_at(0, b"a")
    file.write_out(0, 1)
    assert synced == [file.fileno()]


def test_a_failed_write_out_raises_os_error() -> None:
    read_end, write_end = os.pipe()
    file = LocalFile(write_end)
    try:
        with pytest.raises(OSError, match=r"\[Errno") as caught:
            file.write_out(0, 1)
    finally:
        os.close(read_end)
    assert caught.value.errno in (errno.ESPIPE, errno.EINVAL)


def test_replaced_file_is_readable_by_its_owner_alone_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"first", b"second"):
        LocalFileSystem().replace(str(path), content, sync=True, mode=0o400)

        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o777 == 0o400
