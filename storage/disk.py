"""Resources shared by the files of all logs: the file system and the limits on open files."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage.open_file_cache import OpenFileCache

if TYPE_CHECKING:
    from storage.filesystem import FileSystem

OPEN_FILES_LIMIT = 512
"""Default limit; a broker derives its own from the limit of descriptors."""
MAPPINGS_LIMIT = 8192
"""Fixed: an eighth of the kernel's default (`vm.max_map_count`)."""
INDEX_DESCRIPTORS = int(sys.version_info < (3, 13))
"""File descriptors per mapping: before 3.13, Python keeps a duplicate of its own."""


@dataclass(frozen=True, slots=True)
class Disk:
    """One per broker, handed to every segment."""

    filesystem: FileSystem
    files: OpenFileCache = field(default_factory=lambda: OpenFileCache(OPEN_FILES_LIMIT))
    """Open `.log` files; the limit should stay well below the process's limit of descriptors."""
    maps: OpenFileCache = field(default_factory=lambda: OpenFileCache(MAPPINGS_LIMIT))
    """Mapped indexes; the limit should stay well below the kernel's `vm.max_map_count`."""
    unsaved_epochs: set[str] = field(default_factory=set)
    """Paths of leader epoch files whose write is pending, as they could not be opened."""
