"""`info`: the identity of a node's log directories, and their problems.

    Found log directories:
      /data/one
      /data/two

    Found metadata: {cluster.id=…, directory.id=…, node.id=1, version=1}

    Found problem:
      /data/two is not formatted.

Scripts look for these words of Apache Kafka's. The metadata is that of the first directory.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from broker.storage.directories import read_identity
from storage.directory.meta_properties import FORMATTED
from storage.errors import DamagedFileError
from storage.segment.file_names import META_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from storage.directory.meta_properties import MetaProperties
    from storage.filesystem import FileSystem


@dataclass(slots=True)
class DirectoryReport:
    """Result of `info`."""

    directories: list[str] = field(default_factory=list)
    identity: MetaProperties | None = None
    """Identity of the first formatted directory."""
    problems: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The lines to show; each part ends with an empty one."""
        if self.directories:
            yield f"Found log director{'y' if len(self.directories) == 1 else 'ies'}:"
            yield from (f"  {path}" for path in self.directories)
            yield ""
        if self.identity is not None:
            pairs = (f"{key}={value}" for key, value in sorted(self.identity.pairs.items()))
            yield f"Found metadata: {{{', '.join(pairs)}}}"
            yield ""
        if self.problems:
            yield f"Found problem{'s' * (len(self.problems) > 1)}:"
            yield from (f"  {problem}" for problem in self.problems)
            yield ""


def report_directories(filesystem: FileSystem, paths: Iterable[str]) -> DirectoryReport:
    """Inspect the directories of a node of a Raft quorum."""
    report = DirectoryReport()
    for path in (str(PurePosixPath(one)) for one in paths):
        problem = _inspect(filesystem, path, report)
        if problem is not None:
            report.problems.append(problem)
    if report.identity is not None and report.identity.version != FORMATTED:
        report.problems.append(
            "The directories belong to a broker with ZooKeeper, and process.roles is set."
        )
    return report


def _inspect(filesystem: FileSystem, path: str, report: DirectoryReport) -> str | None:
    """Add a directory to a report; returns its problem, if it has one."""
    try:
        filesystem.names(path)
    except OSError as error:
        return _no_directory(path, error)
    report.directories.append(path)
    try:
        identity = read_identity(filesystem, path)
    except FileNotFoundError:
        return f"{path} is not formatted."
    except (DamagedFileError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.message
        return f"Error loading {posixpath.join(path, META_PROPERTIES)}: {reason}"
    first = report.identity = report.identity or identity
    if identity.cluster_id != first.cluster_id:
        return f"{path} belongs to another cluster than the first directory"
    if identity.broker_id != first.broker_id:
        return f"{path} belongs to another node than the first directory"
    return None


def _no_directory(path: str, error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return f"{path} does not exist"
        case NotADirectoryError():
            return f"{path} is not a directory"
        case _:
            return f"{path} cannot be read: {error.strerror}"
