"""Checkpoint files: small text files that are replaced as a whole.

    0                     version
    2                     number of entries
    flights 0 1204        what an entry says is up to each kind of file (one line each)
    flights 1 998

Source: `CheckpointFile` in Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = "0"
GREATEST: Final = 2**63 - 1
MOST_DIGITS: Final = len(str(GREATEST))


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
        lines = data.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise DamagedFileError("not a text file") from error
    if lines[0] != VERSION:
        raise DamagedFileError(f"version {lines[0][:20]!r} is unknown")
    if lines[-1]:  # a number that is cut off would pass for a smaller one
        raise DamagedFileError("the last line is cut off")
    body = [line for line in lines[2:] if line]
    if len(lines) < len((VERSION, "count")) or decode_integer(lines[1]) != len(body):
        raise DamagedFileError(f"{len(body)} entries, but the second line says {lines[1:2]}")
    return body


def decode_integer(text: str) -> int:
    """The number in a column; DamagedFileError when there is none that an offset can be."""
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise DamagedFileError(f"{text[:40]!r} is not a number")
    number = int(text)
    if number > GREATEST:
        raise DamagedFileError(f"{number} is too large a number")
    return number
