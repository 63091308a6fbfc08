"""Checkpoint files: small text files that are replaced as a whole.

    0                     version
    2                     number of entries
    flights 0 1204        topic, partition, offset   (one line each, in no order)
    flights 1 998

`leader-epoch-checkpoint` has the same head and lines of epoch and start offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.errors import DamagedFileError
from storage.log.log_offsets import NEVER_CLEANED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from storage.filesystem import FileSystem
    from storage.log.log import Log

VERSION: Final = "0"
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
        offsets[columns[0], _integer(columns[1])] = _integer(columns[2])
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


def encode_lines(lines: Iterable[str]) -> bytes:
    """Head and lines."""
    body = list(lines)
    return "\n".join([VERSION, str(len(body)), *body, ""]).encode()


def decode_lines(data: bytes) -> list[str]:
    """Lines after the head; DamagedFileError when the head does not match.

    Apache Kafka creates these files empty and fills them later, so an empty one holds nothing.
    """
    if not data:
        return []
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise DamagedFileError("not a text file") from error
    if lines[0] != VERSION:
        raise DamagedFileError(f"version {lines[0][:20]!r} is unknown")
    if lines[-1]:  # a number that is cut off would pass for a smaller one
        raise DamagedFileError("the last line is cut off")
    body = [line for line in lines[2:] if line]
    if len(lines) < len((VERSION, "count")) or _integer(lines[1]) != len(body):
        raise DamagedFileError(f"{len(body)} entries, but the second line says {lines[1:2]}")
    return body


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise DamagedFileError(f"{text[:40]!r} is not a number") from error
