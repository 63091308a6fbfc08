"""The sdist: what is in the repository, written so that the same files make the same bytes."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

READABLE: Final = 0o644
RUNNABLE: Final = 0o755
ANY_EXECUTE_BIT: Final = 0o111
NOT_OURS: Final = frozenset({"__pycache__", "build", "data", "htmlcov"})


def files_of(root: Path, names: Iterable[str]) -> Iterator[Path]:
    """All files below what is named, but for what tools leave there."""
    for name in sorted(names):
        place = root / name
        found = [place] if place.is_file() else sorted(place.rglob("*"))
        for path in found:
            parts = path.relative_to(root).parts
            is_ours = not any(part in NOT_OURS or part.endswith("_cache") for part in parts)
            if is_ours and path.is_file() and path.suffix != ".pyc":
                yield path


def write_archive(target: Path, root: Path, names: Iterable[str], seconds: int, info: str) -> None:
    """Write it; `seconds` is the time that all is from, `info` the metadata (PKG-INFO)."""
    folder = target.name.removesuffix(".tar.gz")
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=seconds) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _add(archive, f"{folder}/PKG-INFO", info.encode(), READABLE, seconds)
        for path in files_of(root, names):
            is_runnable = path.stat().st_mode & ANY_EXECUTE_BIT
            name = f"{folder}/{path.relative_to(root).as_posix()}"
            _add(archive, name, path.read_bytes(), RUNNABLE if is_runnable else READABLE, seconds)


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int, seconds: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, seconds
    archive.addfile(entry, io.BytesIO(content))
