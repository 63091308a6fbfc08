"""Whether a job can write where it is told to: looked at before any work, and told if it fails."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_jobs.errors import BadOptionError, JobError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def require_directory(flag: str, path: Path) -> None:
    """Make a directory unless it is there; raise `BadOptionError` if it cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise BadOptionError(f"{flag}: {path} is not a directory") from None
    except OSError as error:
        raise BadOptionError(f"{flag}: {path} cannot be made: {_reason(error)}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise BadOptionError(f"{flag}: {path} is a directory that cannot be written to")


def require_file(flag: str, path: Path) -> None:
    """Make the directory of a file to write; raise `BadOptionError` if that cannot be written."""
    if path.is_dir():
        raise BadOptionError(f"{flag}: {path} is a directory, expected a file")
    require_directory(flag, path.parent)
    if path.exists() and not os.access(path, os.W_OK):
        raise BadOptionError(f"{flag}: {path} cannot be written to")


@contextmanager
def writing(flag: str, path: Path) -> Iterator[None]:
    """Tell in one line why a file cannot be written after all: a full disk, say."""
    try:
        yield
    except ConnectionError:  # not the file's
        raise
    except OSError as error:
        raise JobError(f"{flag}: {path} cannot be written: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
