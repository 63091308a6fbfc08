"""The checkpoints of a log directory: an offset for each of its logs.

A line has topic, partition and offset; they are in no order. See `storage.checkpoint_file`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.checkpoint_file import decode_integer, decode_lines, encode_lines
from storage.errors import DamagedFileError
from storage.log.log_offsets import NEVER_CLEANED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.filesystem import FileSystem
    from storage.log.log import Log

OFFSET_COLUMNS: Final = 3


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """Bytes of a checkpoint of one offset per partition."""
    return encode_lines(
        f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()
    )


def decode_offsets(data: bytes) -> dict[tuple[str, int], int]:
    """Offsets by topic and partition; DamagedFileError when the file is not sound."""
    offsets = {}
    for line in decode_lines(data):
        columns = line.split()
        if len(columns) != OFFSET_COLUMNS:
            raise DamagedFileError(f"not a topic, a partition and an offset: {line[:80]!r}")
        offsets[columns[0], decode_integer(columns[1])] = decode_integer(columns[2])
    return offsets


def read_offsets(filesystem: FileSystem, path: str) -> tuple[dict[tuple[str, int], int], str]:
    """Offsets in the file at `path`, and what is wrong with it ("" when nothing is).

    A missing file holds nothing and is not wrong.
    """
    try:
        return decode_offsets(filesystem.read(path)), ""
    except FileNotFoundError:
        return {}, ""
    except DamagedFileError as error:
        return {}, error.message


def cleaned_offset(log: Log) -> int | None:
    """Up to where a log is compacted, if ever; what `cleaner-offset-checkpoint` has of it."""
    return log.cleaned_offset if log.cleaned_offset != NEVER_CLEANED else None


def moved_start(log: Log) -> int | None:
    """Where a log starts, if not with a segment; for `log-start-offset-checkpoint`."""
    is_moved = log.log_start_offset > log.segments[0].base_offset
    return log.log_start_offset if is_moved else None
