"""Locks between processes: files that the system unlocks when their holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POLL_SECONDS = 0.05


@contextmanager
def locked(
    path: Path, *, shared: bool = False, seconds: float | None = None, purpose: str = ""
) -> Iterator[None]:
    """Hold a lock: alone, or `shared` with others that share it.

    Waits for it `seconds` at most, then raises `JobError`; as long as it takes when not given.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    file = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
    try:
        if seconds is None:
            fcntl.flock(file, kind)
        else:
            try:
                _wait(file, kind, seconds)
            except BlockingIOError:
                raise JobError(
                    f"{path} is held by another process: waited {seconds:g} s {purpose}"
                ) from None
        yield
    finally:
        os.close(file)


def _wait(file: int, kind: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return
