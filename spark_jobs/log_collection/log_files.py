"""The files of a log: the one that is written to, and what rotation made of it, oldest first.

    app.log                               written to
    app.log.1  app.log.2.gz               numbered: the greater the older
    app.log-20250624  app.log.2025-06-24.gz    dated: the greater the newer

A name that is a file's name with such an ending belongs to that file's log, whichever of the two a
pattern matched. Where both `app.log.1` and `app.log.1.gz` are there, the second is in the making.
"""

from __future__ import annotations

import errno
import glob
import gzip
import os
import re
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable

COMPRESSED = ".gz"
MOST_LOOKS = 1000
"""How often a log's files are listed that are renamed meanwhile."""

DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)
"""What reading a compressed file raises that is damaged, or not complete yet."""

_NUMBERED = re.compile(r"\.(\d{1,4})(?:\.gz)?")
_DATED = re.compile(r"[-.]\d{4}-?\d\d-?\d\d(?:[-T_.]?\d+)*(?:\.gz)?")
_ROTATED = re.compile(rf"(.+?)(?:{_NUMBERED.pattern}|{_DATED.pattern})")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log, as the directory showed it; equal ones have equal bytes."""

    path: Path
    device: int
    inode: int
    size: int
    """On the disk; of a compressed file not what it holds."""

    modified_ns: int
    is_rotated: bool

    @property
    def is_compressed(self) -> bool:
        """Say whether it must be unpacked to be read."""
        return self.path.suffix == COMPRESSED

    @property
    def identity(self) -> tuple[int, int]:
        """Tell it apart from all files that are there at the same time."""
        return self.device, self.inode

    def open(self) -> gzip.GzipFile | io.BufferedReader:
        """Open what it holds, unpacked; FileNotFoundError when its name is another file's now."""
        stream = gzip.GzipFile(self.path) if self.is_compressed else self.path.open("rb")
        found = os.fstat(stream.fileno())
        if (found.st_dev, found.st_ino) != self.identity:
            stream.close()
            raise FileNotFoundError(errno.ENOENT, "was rotated just now", str(self.path))
        return stream


def logs_of(patterns: Iterable[str]) -> list[Path]:
    """Return the logs that patterns match, by the path that is written to, absolute and sorted."""
    found = (Path(name) for pattern in patterns for name in _matches(pattern))
    return sorted({_log_of(path.absolute()) for path in found if not path.is_dir()})


def files_of(log: Path) -> list[LogFile]:
    """Return the files of a log that are there now, oldest first.

    Rotation renames one file after the other. A look while it does so can find one file under two
    names, and another under none. So it counts when the next one finds each under the same name:
    names move one way, hence all were there in between. FileNotFoundError when none ever does.
    """
    before: list[tuple[Path, tuple[int, int]]] | None = None
    for _ in range(MOST_LOOKS):
        files = _files_once(log)
        found = [(file.path, file.identity) for file in files]
        if found == before:
            return files
        before = found
    raise FileNotFoundError(errno.ENOENT, "is rotated all the time", str(log))


def _files_once(log: Path) -> list[LogFile]:
    try:
        names = os.listdir(log.parent)  # noqa: PTH208 - names are all that is wanted
    except FileNotFoundError:
        return []
    rotated = {name for name in names if _log_of(log.parent / name) == log} - {log.name}
    in_the_making = {name + COMPRESSED for name in rotated}
    ordered = sorted(rotated - in_the_making, key=lambda name: _age(name, log.name))
    files = [_look(log.parent / name, is_rotated=True) for name in ordered]
    return [file for file in (*files, _look(log, is_rotated=False)) if file is not None]


def _matches(pattern: str) -> list[str]:
    return glob.glob(pattern, recursive=True)  # noqa: PTH207 - patterns of anywhere, not of one Path


def _log_of(path: Path) -> Path:
    found = _ROTATED.fullmatch(path.name)
    return path.with_name(found[1]) if found else path


def _age(name: str, log_name: str) -> tuple[int, int, str]:
    """Return what sorts rotated names from the oldest to the newest."""
    ending = name.removeprefix(log_name)
    numbered = _NUMBERED.fullmatch(ending)
    if numbered:
        return 1, -int(numbered[1]), ""
    return 0, 0, ending.removesuffix(COMPRESSED)


def _look(path: Path, *, is_rotated: bool) -> LogFile | None:
    try:
        found = path.stat()
    except FileNotFoundError:  # gone since the directory was read
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return LogFile(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, is_rotated)
