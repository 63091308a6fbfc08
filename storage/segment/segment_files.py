"""Files in the directory of a partition, and the cleanup of those that a crash left half done."""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage.errors import DamagedFileError
from storage.segment import file_names
from storage.segment.batch_scan import CHUNK_BYTES, walk_headers

if TYPE_CHECKING:
    from storage.filesystem import Entry, FileSystem


@dataclass(slots=True)
class SegmentFiles:
    """Files of one segment that are there."""

    size: int
    modified_ms: int
    index_sizes: dict[str, int] = field(default_factory=dict)
    """By suffix."""


@dataclass(slots=True)
class PartitionFiles:
    """Segments by base offset, in order, and the offsets of producer snapshots."""

    segments: dict[int, SegmentFiles]
    snapshots: list[int]


def survey(filesystem: FileSystem, directory: str) -> PartitionFiles:
    """List a partition's directory, after completing or undoing an interrupted operation."""
    entries = _clear_up(filesystem, directory, filesystem.scan(directory))
    for entry in entries:
        if entry.is_dangling:  # its target may be on another disk, and come back
            raise FileNotFoundError(
                errno.ENOENT, "a link that leads nowhere", f"{directory}/{entry.name}"
            )
    parsed = [(file_names.parse_segment_file(entry.name), entry) for entry in entries]
    logs = {
        key[0]: SegmentFiles(entry.size, entry.modified_ms)
        for key, entry in parsed
        if key and key[1] == file_names.LOG
    }
    snapshots = []
    for key, entry in parsed:
        if key is None:
            continue
        base_offset, suffix = key
        if suffix == file_names.SNAPSHOT:
            snapshots.append(base_offset)
        elif base_offset in logs:
            logs[base_offset].index_sizes[suffix] = entry.size
        elif suffix in file_names.SEGMENT_SUFFIXES:
            filesystem.remove(f"{directory}/{entry.name}")
    return PartitionFiles(dict(sorted(logs.items())), snapshots)


def _clear_up(filesystem: FileSystem, directory: str, entries: list[Entry]) -> list[Entry]:
    """Remove deleted and half-written files, and put compacted segments in place.

    Compaction writes `.cleaned` files, renames them to `.swap` when they are whole, sets the
    segments they replace aside, and renames them once more. The next start repairs a crash at any
    step of this: undone files are removed before the `.cleaned` files that mark them.
    """
    leftovers = (file_names.DELETED, file_names.CLEANED, file_names.TEMPORARY)
    gone = [entry for entry in entries if entry.name.endswith(leftovers)]
    swaps = [entry for entry in entries if entry.name.endswith(file_names.SWAP)]
    if not gone and not swaps:
        return entries
    undone = _undone(filesystem, directory, entries)
    # The .log file last: without it, the others are those of a segment that is in place.
    for entry in sorted(swaps, key=_is_promised_log):
        if _base_offset(entry) in undone:
            filesystem.remove(f"{directory}/{entry.name}")
    for entry in gone:
        filesystem.remove(f"{directory}/{entry.name}")
    for entry in swaps:
        if _is_promised_log(entry) and _base_offset(entry) not in undone:
            _remove_replaced(filesystem, directory, entry, entries)
    _rename_swaps(filesystem, directory)
    return filesystem.scan(directory)


def _undone(filesystem: FileSystem, directory: str, entries: list[Entry]) -> set[int]:
    """Base offsets of the `.swap` files that belong to a group that was not whole yet.

    Such a group has `.cleaned` files too, at this offset or below, and the segments that it was to
    replace are still in place. Where they are not, the `.cleaned` files are of another cleaning,
    which could not remove them, and the `.swap` files are all there is of these offsets.
    """
    cleaned = [_base_offset(one) for one in entries if one.name.endswith(file_names.CLEANED)]
    promised = [_base_offset(one) for one in entries if _is_promised_log(one)]
    first = min(cleaned, default=None)
    if first is None:
        return set()
    return {
        base_offset
        for base_offset in promised
        if base_offset >= first and _is_in_place(filesystem, directory, entries, base_offset)
    }


def _is_in_place(filesystem: FileSystem, directory: str, entries: list[Entry], offset: int) -> bool:
    """Return whether a `.log` file begins at `offset` or reaches beyond it.

    The latter is the state that Apache Kafka leaves of a segment it was about to split.
    """
    sizes = {
        key[0]: entry.size
        for entry in entries
        if (key := file_names.parse_segment_file(entry.name)) and key[1] == file_names.LOG
    }
    base_offset = max((one for one in sizes if one <= offset), default=None)
    if base_offset is None or base_offset == offset:
        return base_offset == offset
    file = filesystem.open(file_names.segment_file(directory, base_offset, file_names.LOG))
    with suppress(DamagedFileError):  # what cannot be read is dealt with when the log is loaded
        for _, header in walk_headers(file, 0, sizes[base_offset], CHUNK_BYTES):
            if header.next_offset > offset:
                return True
    return False


def _remove_replaced(
    filesystem: FileSystem, directory: str, swap: Entry, entries: list[Entry]
) -> None:
    """Remove the segments whose offsets the swap file covers."""
    base_offset = end_offset = _base_offset(swap)
    file = filesystem.open(f"{directory}/{swap.name}")
    for _, header in walk_headers(file, 0, swap.size, CHUNK_BYTES):
        end_offset = header.next_offset
    for entry in entries:
        key = file_names.parse_segment_file(entry.name)
        is_segment = key is not None and key[1] in file_names.SEGMENT_SUFFIXES
        if key is not None and is_segment and base_offset <= key[0] < end_offset:
            filesystem.remove(f"{directory}/{entry.name}")


def _rename_swaps(filesystem: FileSystem, directory: str) -> None:
    # The .log file first: a start that finds it still a promise removes the indexes beside it,
    # and could not rebuild the transaction index.
    swaps = [
        entry.name for entry in filesystem.scan(directory) if entry.name.endswith(file_names.SWAP)
    ]
    for name in sorted(swaps, key=lambda name: file_names.LOG + file_names.SWAP not in name):
        target = name.removesuffix(file_names.SWAP)
        filesystem.rename(f"{directory}/{name}", f"{directory}/{target}")


def _is_promised_log(entry: Entry) -> bool:
    return entry.name.endswith(file_names.LOG + file_names.SWAP)


def _base_offset(entry: Entry) -> int:
    digits = entry.name.split(".", 1)[0]
    return int(digits) if digits.isdigit() else 0
