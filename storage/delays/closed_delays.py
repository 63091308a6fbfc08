"""Sizes of the `.delays` files of each log at a clean stop, to detect changes since.

A record in a log is found without any index; one that waits is not, if the delay index of its
segment is truncated or missing, which inspection of the file alone does not show. So a clean stop
describes these files too, among the lines of `storage.directory.closed_logs`, for each log in which
records wait, have waited, or may: its directory by inode, and the expected size of each file. The
start voids each file of another size before it discards the description: after any later failure,
that file is rebuilt from the log.

    flights-0:delays 2893741283 0,240,4711,48        the segments at 0 and 4711 have one

A log that is not described was not stopped by this version, or has been replaced. If records may
wait in it, its indexes are checked against the log once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from storage.delays.delay_index import DelayIndex

if TYPE_CHECKING:
    from storage.filesystem import FileSystem, Stamp

SUFFIX: Final = ":delays"
"""Suffix that the name of a log's directory cannot have."""
NOTHING: Final = "-"


class ClosedDelays(NamedTuple):
    """Delay indexes of one log."""

    name: str
    """Of its directory."""
    inode: int
    sizes: dict[int, int]
    """By base offset, where there is one."""

    def are_of(self, stamp: Stamp) -> bool:
        """Return whether the log's directory is the same."""
        return stamp.inode == self.inode


def encode(known: ClosedDelays) -> str:
    """One line."""
    sizes = ",".join(f"{base_offset},{size}" for base_offset, size in known.sizes.items())
    return f"{known.name}{SUFFIX} {known.inode} {sizes or NOTHING}\n"


def decode(line: str) -> ClosedDelays:
    """Parse a line."""
    name, inode, column = line.split(" ")
    numbers = [] if column == NOTHING else list(map(int, column.split(",")))
    sizes = dict(zip(numbers[::2], numbers[1::2], strict=True))
    return ClosedDelays(name.removesuffix(SUFFIX), int(inode), sizes)


def make_others_void(filesystem: FileSystem, directory: str, known: ClosedDelays) -> None:
    """Void indexes that differ from their description. Waits for the disk if there is one.

    The log lies in `directory`, a log directory.
    """
    path = f"{directory}/{known.name}"
    stamp = filesystem.stamp(path)
    if stamp is None or not known.are_of(stamp):
        return
    for base_offset, size in known.sizes.items():
        index = DelayIndex(filesystem, path, base_offset)
        found = filesystem.stamp(index.path)
        if found is None or found.size != size:
            index.make_void()
            index.sync()
            filesystem.sync_directory(path)
