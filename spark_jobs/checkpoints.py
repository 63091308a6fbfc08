"""Whose checkpoint a directory is: noted when it is first used, looked at each time after.

Spark itself takes any checkpoint for any query, and fails late and darkly, or not at all. Beside
its directories `offsets`, `commits` and `state` lies `job.json`: the job, the topics it reads, and
what else must stay the same for the life of a checkpoint.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from spark_jobs.errors import BadOptionError
from spark_jobs.places import require_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "job.json"


def claim_checkpoint(directory: Path, identity: Mapping[str, str | int]) -> None:
    """Note that `directory` belongs to `identity`; raise `BadOptionError` if it is another's.

    Meant for a directory that the driver can reach as a file. The error names what differs.
    """
    require_directory("--checkpoint", directory)
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


def _write(path: Path, identity: Mapping[str, str | int]) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(dict(identity), indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
