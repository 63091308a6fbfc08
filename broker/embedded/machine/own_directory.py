"""The directory of a broker or cluster, removed with it, at the latest by the next one.

A test process that is killed, or ends by `os._exit`, removes nothing. So each directory has a file
that its process keeps locked, and the first broker of another process removes directories without a
lock.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "embedded-"
LOCK: Final = ".held"
UNLOCKED: Final = ".new"
"""Suffix of the lock file until it is locked, so that it is not taken for an abandoned one."""

_held: dict[Path, int] = {}
"""Descriptors of the locks, by directory."""


def make_own_directory(parent: Path, name: str) -> Path:
    """An exclusive directory; its name begins with `PREFIX` and `name`."""
    _remove_abandoned(parent, os.getpid())
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name}-", dir=parent))
    descriptor = os.open(path / UNLOCKED, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (path / UNLOCKED).rename(path / LOCK)
    _held[path] = descriptor
    return path


def remove_own_directory(path: Path) -> None:
    """Remove it with all it holds."""
    shutil.rmtree(path, ignore_errors=True)
    descriptor = _held.pop(path, None)
    if descriptor is not None:
        os.close(descriptor)


@functools.cache
def _remove_abandoned(parent: Path, process: int) -> None:  # noqa: ARG001 - once in each process
    """Remove the directories of processes that have ended."""
    for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError):  # it is another user's, held, or gone meanwhile
            descriptor = os.open(lock, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(descriptor)
