"""The sdist: the same files make the same bytes, and what tools leave is not among them."""

from __future__ import annotations

import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from scripts.wheel.source_archive import write_archive

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 1_700_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for path in ("scripts/setup", "broker/app.py", "broker/__pycache__/app.pyc", "data/log"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    (root / "scripts" / "setup").chmod(0o700)
    return root


def _written(target: Path, root: Path) -> Path:
    target.parent.mkdir()
    write_archive(target, root, ["scripts", "broker"], SECONDS, "Name: x")
    return target


def test_the_source_archive_is_reproducible(root: Path, tmp_path: Path) -> None:
    before = _written(tmp_path / "before" / "x-1.tar.gz", root).read_bytes()
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    (root / "broker" / "app.py").chmod(0o600)
    assert _written(tmp_path / "after" / "x-1.tar.gz", root).read_bytes() == before


def test_the_source_archive_holds_the_package_in_one_folder(root: Path, tmp_path: Path) -> None:
    with tarfile.open(_written(tmp_path / "out" / "x-1.tar.gz", root)) as archive:
        modes = {entry.name: entry.mode for entry in archive.getmembers()}
    assert modes == {"x-1/PKG-INFO": 0o644, "x-1/broker/app.py": 0o644, "x-1/scripts/setup": 0o755}
