"""The lock that a broker of a node holds while it lives, and by which a supervisor finds it.

The kernel releases the lock when the process ends, for any reason, and knows its owner. So there
are no process ids in files, which could be reused by other processes.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Final

OWNER_ONLY: Final = 0o700

_FLOCK: Final = "hhqqi"
"""The kernel's `struct flock`: type, whence, start, length, process."""
_WHOLE_FILE: Final = (os.SEEK_SET, 0, 0, 0)


class MemberLock:
    """Held until this process ends, or releases it; child processes do not inherit it."""

    def __init__(self, descriptor: int) -> None:
        """Use `take`. No other descriptor of the file may be closed: that gives the lock back."""
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: str) -> MemberLock | None:
        """Take the lock; None when another process holds it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            return None
        return cls(descriptor)

    def give_back(self) -> None:
        """Release it for another process."""
        os.close(self._descriptor)


def holder(path: str) -> int | None:
    """The process that holds a lock, None if none does; not to be asked by the holder itself."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, *_WHOLE_FILE)
        kind, *_, process = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else int(process)


def make_directory(path: str) -> None:
    """Make the state directory, for this user alone."""
    Path(path).mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
