"""Whether the `.delays` of a log are what a clean stop has left, which no look at them tells.

A record in a log is found without any index; one that waits is not, if the delay index of its
segment ends too soon or is gone. So a clean stop describes these files too, among the lines of
`storage.directory.closed_logs`, for each log in which records wait, have waited, or may: its
directory by inode, and what size each file has to have. The start makes void what has another size,
before it forgets the description: whatever happens then, that is made anew from the log.

    flights-0:delays 2893741283 0,240,4711,48        the segments at 0 and 4711 have one

A log that is not described was not stopped by this version, or is another one by now. If records
may wait in it, its indexes are held against the log once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from storage.delays.delay_index import DelayIndex

if TYPE_CHECKING:
    from storage.filesystem import FileSystem, Stamp

SUFFIX: Final = ":delays"
"""Not to be had in the name of a log's directory."""
NOTHING: Final = "-"


class ClosedDelays(NamedTuple):
    """Those of one log."""

    name: str
    """Of its directory."""
    inode: int
    sizes: dict[int, int]
    """By base offset, where there is one."""

    def are_of(self, stamp: Stamp) -> bool:
        """Whether the log's directory is the same."""
        return stamp.inode == self.inode


def encode(known: ClosedDelays) -> str:
    """One line."""
    sizes = ",".join(f"{base_offset},{size}" for base_offset, size in known.sizes.items())
    return f"{known.name}{SUFFIX} {known.inode} {sizes or NOTHING}\n"


def decode(line: str) -> ClosedDelays:
    """What a line says."""
    name, inode, column = line.split(" ")
    numbers = [] if column == NOTHING else list(map(int, column.split(",")))
    sizes = dict(zip(numbers[::2], numbers[1::2], strict=True))
    return ClosedDelays(name.removesuffix(SUFFIX), int(inode), sizes)


def make_others_void(filesystem: FileSystem, directory: str, known: ClosedDelays) -> None:
    """Let nobody believe an index that is not as it was left. Waits for the disk if there is one.

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
