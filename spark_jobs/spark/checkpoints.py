"""Whose checkpoint a directory is: noted when it is first used, looked at each time after.

Spark itself takes any checkpoint for any query, and fails late and darkly, or not at all. Beside
its directories `offsets`, `commits` and `state` lies `job.json`: the job, the topics it reads, and
what else must stay the same for the life of a checkpoint. `job.lock` is locked by the process that
uses it, until that ends: two at once would do each batch twice.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import TYPE_CHECKING

from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.paths import require_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "job.json"
LOCK = "job.lock"
LOCK_SECONDS = 10.0
"""How long a job that has been told to stop is waited for."""
POLL_SECONDS = 0.1

_held: dict[tuple[int, int], int] = {}
"""Descriptors of the locks of this process, by device and inode: open until it ends."""


def claim_checkpoint(directory: Path, identity: Mapping[str, str | int]) -> None:
    """Note that `directory` belongs to `identity`; raise `BadOptionError` if it is another's.

    Raises `JobError` when another process is at work in it. This process may claim it again and
    again: of two queries at once Spark itself refuses the second. Meant for a directory that the
    driver can reach as a file. The error names what differs.
    """
    require_directory("--checkpoint", directory)
    _lock(directory / LOCK)
    path = directory / FILE
    if not path.exists():
        _write(path, identity)
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadOptionError(f"--checkpoint: {path} is damaged: {error}") from error
    if not isinstance(found, dict):
        raise BadOptionError(f"--checkpoint: {path} is damaged: it holds no names and values")
    for key, value in identity.items():
        if found.get(key) != value:
            raise BadOptionError(
                f"--checkpoint: {directory} belongs to a query with {key} '{found.get(key)}', "
                f"and here it is '{value}': use another directory"
            )


def _lock(path: Path) -> None:
    """Lock until this process ends, however it does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    status = os.fstat(descriptor)
    at = status.st_dev, status.st_ino
    if at in _held:
        os.close(descriptor)
        return
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
                continue
            holder = os.read(descriptor, 32).decode(errors="replace")
            os.close(descriptor)
            raise JobError(
                f"--checkpoint: {path.parent} is in use by another run (process {holder}): end "
                "that first, or use another directory"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        _held[at] = descriptor
        return


def _write(path: Path, identity: Mapping[str, str | int]) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(dict(identity), indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
