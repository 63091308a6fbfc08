"""The checkpoints of a log directory: an offset for each of its logs.

A line has topic, partition and offset; they are in no order. See `storage.checkpoint_file`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.checkpoint_file import decode_integer, decode_lines, encode_lines
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.filesystem import FileSystem

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
    """Offsets in the file at `path`, and its error ("" if there is none).

    A missing file is empty, not an error.
    """
    try:
        return decode_offsets(filesystem.read(path)), ""
    except FileNotFoundError:
        return {}, ""
    except DamagedFileError as error:
        return {}, error.message
