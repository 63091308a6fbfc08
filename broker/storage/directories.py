"""Log directories on the disk: read before they are formatted, and written.

`meta.properties` is written last, and is durable only after all else is: a directory whose
formatting a crash cut short is not formatted, and is formatted again from the start.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from broker.storage.plan import FoundDirectories
from controller.bootstrap.checkpoint import FILE_NAME
from storage.directory import meta_properties
from storage.errors import DamagedFileError
from storage.segment.file_names import CLUSTER_METADATA, META_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.storage.plan import NewDirectory
    from storage.directory.meta_properties import MetaProperties
    from storage.filesystem import FileSystem

OWNER_READS: Final = 0o400
"""Mode of snapshots, which hold credentials; the same as Apache Kafka's."""


def read_directories(filesystem: FileSystem, paths: Iterable[str]) -> FoundDirectories:
    """Sort directories by what their `meta.properties` is."""
    formatted: dict[str, MetaProperties] = {}
    unformatted, unreadable = [], {}
    for path in paths:
        try:
            formatted[path] = read_identity(filesystem, path)
        except FileNotFoundError:
            unformatted.append(path)
        except OSError as error:
            unreadable[path] = str(error.strerror)
        except DamagedFileError as error:
            unreadable[path] = f"{META_PROPERTIES} is damaged: {error.message}"
    return FoundDirectories(formatted, tuple(unformatted), unreadable)


def read_identity(filesystem: FileSystem, path: str) -> MetaProperties:
    """Read `meta.properties`. Raises OSError, and DamagedFileError."""
    return meta_properties.decode(filesystem.read(posixpath.join(path, META_PROPERTIES)))


def format_directory(
    filesystem: FileSystem, directory: NewDirectory, checkpoint: bytes | None, now_ms: int
) -> None:
    """Write one directory. Raises OSError, and then it is not formatted.

    `checkpoint` is what the metadata log of a controller begins with, if it is there.
    """
    path = directory.path
    _make_directory(filesystem, path)
    if checkpoint is not None:
        metadata = posixpath.join(path, CLUSTER_METADATA)
        _make_directory(filesystem, metadata)
        file = posixpath.join(metadata, FILE_NAME)
        filesystem.replace(file, checkpoint, sync=True, mode=OWNER_READS)
    content = meta_properties.encode(directory.identity, now_ms)
    filesystem.replace(posixpath.join(path, META_PROPERTIES), content, sync=True)


def _make_directory(filesystem: FileSystem, path: str) -> None:
    """Create a directory and its parents, all of them durable."""
    absent = []
    while path and not filesystem.exists(path):
        absent.append(path)
        path = posixpath.dirname(path)
    if absent:
        filesystem.make_directory(absent[0])
    for created in reversed(absent):
        filesystem.sync_directory(posixpath.dirname(created) or posixpath.curdir)
