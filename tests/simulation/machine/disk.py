"""A disk in memory whose tail is volatile: what was not synced is lost or torn when power fails.

Killing a process loses nothing, as the page cache belongs to the machine. Names are durable at
once; of a file's contents the last sync is, and after a power failure what was appended since is
cut somewhere. A disk may be full, and it may fail.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any
from weakref import WeakSet
from zlib import crc32

from storage.filesystem import READ_MODE, Entry, Space, Stamp, sync_each
from tests.simulation.machine.sockets import file_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from protocol.wire import Buffer
    from storage.filesystem import File

INITIAL_CAPACITY = 1024


class Contents:
    """Bytes of a file, and those of them that would survive a power failure."""

    __slots__ = ("__weakref__", "buffers", "changes", "durable", "inode", "modified_ms", "size")

    def __init__(self, inode: int) -> None:
        self.inode = inode
        self.changes = 0
        self.buffers = [bytearray(INITIAL_CAPACITY)]
        """The last one is the file; those before are kept up because they are mapped."""
        self.size = 0
        self.durable = b""
        self.modified_ms = 0

    def view(self) -> memoryview:
        return memoryview(self.buffers[-1])[: self.size]

    def write(self, position: int, data: bytes) -> None:
        self.changes += 1
        end = position + len(data)
        if end > len(self.buffers[-1]):
            grown = bytearray(max(end, 2 * len(self.buffers[-1])))
            grown[: self.size] = self.buffers[-1][: self.size]
            self.buffers.append(grown)
        for buffer in self.buffers:
            if position < len(buffer):
                buffer[position : min(end, len(buffer))] = data[: len(buffer) - position]
        self.size = max(self.size, end)

    def truncate(self, size: int) -> None:
        self.changes += 1
        if size > self.size:
            self.write(self.size, bytes(size - self.size))
        else:
            self.buffers[-1][size : self.size] = bytes(self.size - size)
        self.size = size

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.inode, self.changes, self.size, self.modified_ms)

    def lose_power(self, random: Random) -> None:
        """Keep what was synced, and some of what was appended since."""
        current = bytes(self.view())
        if current == self.durable:
            return
        if current.startswith(self.durable):
            kept = current[: random.randint(len(self.durable), len(current))]
        else:
            kept = random.choice((self.durable, current))
        self.changes += 1
        self.buffers = [bytearray(kept) or bytearray(INITIAL_CAPACITY)]
        self.size = len(kept)
        self.durable = kept


class SimulatedFile:
    """An open file."""

    def __init__(self, disk: SimulatedDisk, contents: Contents) -> None:
        self._disk = disk
        self._contents = contents
        self._life = disk.life
        self._number = -1

    def fileno(self) -> int:
        if self._number < 0:
            self._number = file_descriptor(self)
        return self._number

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._contents.view()[position : position + length])

    def write_at(self, position: int, data: Buffer) -> None:
        self._disk.use(self._life, len(data))
        self._contents.write(position, bytes(data))
        self._contents.modified_ms = self._disk.now_ms()

    def truncate(self, size: int) -> None:
        self._disk.use(self._life)
        self._contents.truncate(size)

    def begin_write_out(self, position: int, length: int) -> None:
        self._disk.use(self._life)

    def write_out(self, position: int, length: int) -> None:
        self._disk.use(self._life)

    def sync(self) -> None:
        self._disk.use(self._life)
        if not self._disk.forgets_to_sync:
            self._contents.durable = bytes(self._contents.view())

    def size(self) -> int:
        return self._contents.size

    def map(self) -> Buffer:
        return self._contents.view().toreadonly()


class SimulatedDisk:
    """`storage.filesystem.FileSystem` of one machine; it outlives the broker's lives."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.life = 0
        """Handles of earlier lives do nothing any more."""
        self.room = 1 << 40
        self.forgets_to_sync = False
        self._inodes = 0
        self._files: dict[str, Contents] = {}
        self._all: WeakSet[Contents] = WeakSet()
        self._directories: set[str] = {"/"}
        self._locks: dict[str, SimulatedFile] = {}

    def use(self, life: int, count: int = 0) -> None:
        """Refuse a dead process, and a write that finds no room."""
        if life != self.life:
            raise OSError(errno.EIO, "the process is dead")
        if count > self.room:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.room -= count

    def end_life(self) -> None:
        """The process is gone, and with it its locks and handles."""
        self.life += 1
        self._locks.clear()

    def lose_power(self, random: Random) -> None:
        """The machine is gone, and with it what was not synced."""
        self.end_life()
        for contents in self._files.values():
            contents.lose_power(random)

    def forget(self) -> None:
        """The run is over: free what was ever on it, whoever still has it open."""
        self._files.clear()
        for contents in self._all:
            contents.truncate(0)
            contents.buffers = [bytearray()]
            contents.durable = b""

    # FileSystem

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        path = _clean(path)
        if path not in self._files:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._need_parent(path)
            self._files[path] = self._new_contents()
        return SimulatedFile(self, self._files[path])

    def scan(self, path: str) -> list[Entry]:
        path = _clean(path)
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return [
            *(
                Entry(os.path.basename(name), True, self._stamp_of_directory(name))
                for name in sorted(self._directories)
                if name != path and os.path.dirname(name) == path
            ),
            *(
                Entry(os.path.basename(name), False, contents.stamp)
                for name, contents in sorted(self._files.items())
                if os.path.dirname(name) == path
            ),
        ]

    def names(self, path: str) -> list[str]:
        return [entry.name for entry in self.scan(path)]

    def stamp(self, path: str) -> Stamp | None:
        path = _clean(path)
        if path in self._files:
            return self._files[path].stamp
        return self._stamp_of_directory(path) if path in self._directories else None

    def _stamp_of_directory(self, path: str) -> Stamp:
        """It changes with the names in it, and with the files that they stand for."""
        held = [
            (name, contents.inode)
            for name, contents in sorted(self._files.items())
            if os.path.dirname(name) == path
        ]
        return Stamp(crc32(path.encode()), crc32(repr(held).encode()), 0, 0)

    def exists(self, path: str) -> bool:
        path = _clean(path)
        return path in self._files or path in self._directories

    def read(self, path: str) -> bytes:
        file = self.open(path)
        return file.read_at(0, file.size())

    def replace(self, path: str, data: bytes, *, sync: bool, mode: int = READ_MODE) -> None:
        path = _clean(path)
        self._need_parent(path)
        self.use(self.life, len(data))
        contents = self._new_contents()
        contents.write(0, data)
        if sync:
            contents.durable = bytes(data)
        contents.modified_ms = self.now_ms()
        self._files[path] = contents

    def make_directory(self, path: str) -> None:
        path = _clean(path)
        while path not in self._directories:
            self._directories.add(path)
            path = os.path.dirname(path)

    def rename(self, source: str, target: str) -> None:
        source, target = _clean(source), _clean(target)
        if source in self._files:
            self._files[target] = self._files.pop(source)
            return
        if source not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        for names in (self._directories, self._files):
            for name in [one for one in names if one == source or one.startswith(source + "/")]:
                moved = target + name[len(source) :]
                if isinstance(names, set):
                    names.remove(name)
                    names.add(moved)
                else:
                    names[moved] = names.pop(name)

    def set_modified(self, path: str, modified_ms: int) -> None:
        self._files[_clean(path)].modified_ms = modified_ms

    def remove(self, path: str) -> None:
        self._files.pop(_clean(path), None)

    def remove_tree(self, path: str) -> None:
        path = _clean(path)
        for name in [one for one in self._files if one.startswith(path + "/")]:
            del self._files[name]
        for name in [one for one in self._directories if one == path or one.startswith(path + "/")]:
            self._directories.remove(name)

    def sync_directory(self, path: str) -> None:
        if _clean(path) not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        return sync_each(files)

    @property
    def syncs_together(self) -> bool:
        return False

    def sync_all(self) -> None:
        if not self.forgets_to_sync:
            for contents in self._files.values():
                contents.durable = bytes(contents.view())

    def lock(self, path: str) -> SimulatedFile | None:
        path = _clean(path)
        if path in self._locks:
            return None
        self._locks[path] = self.open(path, create=True)
        return self._locks[path]

    def space(self, path: str) -> Space:
        return Space(1 << 40, self.room)

    def _new_contents(self) -> Contents:
        self._inodes += 1
        contents = Contents(self._inodes)
        self._all.add(contents)
        return contents

    def _need_parent(self, path: str) -> None:
        if os.path.dirname(path) not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", os.path.dirname(path))


def _clean(path: Any) -> str:
    return os.path.normpath(str(path))
