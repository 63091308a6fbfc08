"""Two directories take each other's place in one step, so that no reader finds neither or both.

Linux can do it (`renameat2` with RENAME_EXCHANGE) on ext4, xfs, btrfs, tmpfs and others.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path
from typing import Any

from spark_jobs.errors import JobError

AT_FDCWD = -100
RENAME_EXCHANGE = 2
"""Both from Linux's headers."""


def exchange(one: Path, other: Path) -> None:
    """Let two directories of one file system change places; raise `OSError` if they cannot."""
    function: Any = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        raise OSError("this system has no renameat2")
    paths = [os.fsencode(path) for path in (one, other)]
    if function(AT_FDCWD, paths[0], AT_FDCWD, paths[1], RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one), None, str(other))


def require_exchange(place: Path) -> None:
    """Raise `JobError` unless directories below `place` can be exchanged."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        one, other = Path(name) / "one", Path(name) / "other"
        one.mkdir()
        other.mkdir()
        try:
            exchange(one, other)
        except OSError as error:
            raise JobError(
                f"{place}: directories cannot be exchanged in one step here "
                f"({error.strerror or error}); ext4, xfs, btrfs and tmpfs of Linux can"
            ) from error
