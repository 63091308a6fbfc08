"""The disk's adapter: what has no other test, since nothing that is stored shows it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from storage.filesystem import LocalFile, LocalFileSystem

if TYPE_CHECKING:
    from pathlib import Path


def test_written_out_bytes_are_there_and_their_file_can_grow(tmp_path: Path) -> None:
    file = LocalFileSystem().open(str(tmp_path / "file"), create=True)
    file.write_at(0, b"a" * 10_000)
    file.write_out(0, 10_000)
    file.write_at(10_000, b"b")
    file.write_out(10_000, 1)
    assert file.read_at(0, 20_000) == b"a" * 10_000 + b"b"


def test_what_the_disk_does_not_take_is_an_error() -> None:
    read_end, write_end = os.pipe()
    file = LocalFile(write_end)
    try:
        with pytest.raises(OSError, match=r"\[Errno") as caught:
            file.write_out(0, 1)
    finally:
        os.close(read_end)
    assert caught.value.errno in (errno.ESPIPE, errno.EINVAL)
