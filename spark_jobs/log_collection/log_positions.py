"""How far a file of a log has been read, and which file that is after it was renamed or copied.

A position names its file by device and inode, and by what was read from it: the first bytes, and
a digest of the last ones before the offset. Inodes are used again after a file is deleted, and
compressing a file or copying it gives it another: then the bytes tell.

`assign` gives each file of a log its position. It knows what rotation does:

    renamed         the same inode under another name
    compressed      no inode known; unpacked, the bytes are the same
    copied, then    the inode holds other bytes now, or fewer; the bytes read from it
    truncated       are the beginning of the copy
    being copied    the newest rotated file is a beginning of the one written to: not read yet

Files older than the oldest that has a position were read whole, long ago; others without one are
new. What is lost on truncation between the copy and the cut is nobody's to find.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from spark_jobs.log_collection.log_files import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from spark_jobs.log_collection.log_files import LogFile

HEAD_BYTES = 256
TAIL_BYTES = 1024
COMPARED_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Position:
    """How far one file has been read."""

    device: int
    inode: int
    offset: int = 0
    """Bytes read, of what the file holds unpacked."""

    head: bytes = b""
    """The first `HEAD_BYTES` of them."""

    tail: str = ""
    """Digest of the last `TAIL_BYTES` of them."""

    is_whole: bool = False
    """The file was rotated and read to its end."""

    @property
    def identity(self) -> tuple[int, int]:
        """Name the file as long as it is there."""
        return self.device, self.inode

    def of(self, file: LogFile) -> Position:
        """Return the same position in a copy of the file."""
        return replace(self, device=file.device, inode=file.inode)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return {
            "device": self.device,
            "inode": self.inode,
            "offset": self.offset,
            "head": base64.b64encode(self.head).decode(),
            "tail": self.tail,
            "whole": self.is_whole,
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """Read what `to_json` gave."""
        return cls(
            device=found["device"],
            inode=found["inode"],
            offset=found["offset"],
            head=base64.b64decode(found["head"]),
            tail=found["tail"],
            is_whole=found["whole"],
        )


@dataclass(frozen=True, slots=True)
class Assigned:
    """A file that may hold something new, and the position in it."""

    file: LogFile
    position: Position

    def continues(self, position: Position) -> bool:
        """Say whether a position is this one, in this file or in the one it was copied from.

        The copy of a truncated file can have less in it than was read of the file.
        """
        ours = self.position
        if _is_same(ours, position):
            return True
        is_cut = ours.is_whole and ours.offset < position.offset
        return is_cut and position.head.startswith(ours.head)


def _is_same(one: Position, other: Position) -> bool:
    """Say whether the same was read, in whichever file."""
    return (one.offset, one.tail) == (other.offset, other.tail)


def digest(tail: bytes) -> str:
    """Return what `Position.tail` says of the last bytes read."""
    return hashlib.blake2b(tail[-TAIL_BYTES:], digest_size=12).hexdigest()


def assign(files: Sequence[LogFile], positions: Sequence[Position]) -> list[Assigned]:
    """Return files and positions, oldest first; both arguments are in that order too.

    Positions whose file is not found are left out. Raises OSError when a file cannot be read.
    """
    claims = _by_inode(files, positions)
    _by_content(files, positions, claims)
    _by_truncation(files, positions, claims)
    oldest = min(claims, default=0)
    passed_over = _copy_in_the_making(files, claims)
    return [
        Assigned(file, claims.get(index) or Position(file.device, file.inode))
        for index, file in enumerate(files)
        if index >= oldest and index != passed_over
    ]


Claims = dict[int, Position]
"""The position of each file that has one, by the file's index."""


def _by_inode(files: Sequence[LogFile], positions: Sequence[Position]) -> Claims:
    newest = {position.identity: position for position in positions}
    claims = {}
    for index, file in enumerate(files):
        position = newest.get(file.identity)
        if position is not None and holds(file, position):
            claims[index] = position
    return claims


def _by_content(files: Sequence[LogFile], positions: Sequence[Position], claims: Claims) -> None:
    """Find compressed files and copies; a file that is older has the older position."""
    claimed = {position: index for index, position in claims.items()}
    lowest = 0
    for number, position in enumerate(positions):
        if position in claimed:
            lowest = claimed[position] + 1
            continue
        newer = [claimed[later] for later in positions[number + 1 :] if later in claimed]
        for index in range(lowest, min(newer, default=len(files))):
            file = files[index]
            if file.is_rotated and index not in claims and holds(file, position):
                claims[index] = position.of(file)
                lowest = index + 1
                break


def _by_truncation(files: Sequence[LogFile], positions: Sequence[Position], claims: Claims) -> None:
    """Find the copy of a file that was truncated when more was read of it than was copied."""
    if len(files) < 2 or files[-1].is_rotated or {len(files) - 1, len(files) - 2} & set(claims):  # noqa: PLR2004
        return
    file, copy = files[-1], files[-2]
    if not positions or positions[-1].identity != file.identity:
        return
    if positions[-1].is_whole or any(_is_same(positions[-1], each) for each in claims.values()):
        return
    try:
        with copy.open() as stream:
            content = stream.read(positions[-1].offset)
            if stream.read(1) or not content:
                return
    except DAMAGED:
        return
    head = content[:HEAD_BYTES]
    if positions[-1].head.startswith(head):
        claims[len(files) - 2] = Position(
            copy.device, copy.inode, len(content), head, digest(content), is_whole=True
        )


def _copy_in_the_making(files: Sequence[LogFile], claims: Claims) -> int | None:
    """Return the index of a file that must not be read yet, if there is one."""
    index = len(files) - 2
    if index < 0 or index in claims or files[-1].is_rotated or files[index].is_compressed:
        return None
    copy, file = files[index], files[-1]
    if copy.size > file.size or not _is_beginning(copy, file.path, file.identity):
        return None
    return index


@functools.lru_cache(maxsize=4096)
def holds(file: LogFile, position: Position) -> bool:
    """Say whether the bytes that were read up to a position are the first ones of a file."""
    if position.offset > file.size and not file.is_compressed:
        return False
    before_tail = max(position.offset - TAIL_BYTES, 0)
    try:
        with file.open() as stream:
            if stream.read(len(position.head)) != position.head:
                return False
            stream.seek(before_tail)
            tail = stream.read(position.offset - before_tail)
            if len(tail) < position.offset - before_tail or digest(tail) != position.tail:
                return False
            is_other_file = file.identity != position.identity
            return not (position.is_whole and is_other_file and stream.read(1))
    except DAMAGED:
        return file.identity == position.identity


@functools.lru_cache(maxsize=1024)
def _is_beginning(copy: LogFile, path: Path, identity: tuple[int, int]) -> bool:  # noqa: ARG001
    """Say whether all of `copy` is the beginning of the file at `path`, which only grows.

    `identity` is that file's: its size is left out of what is remembered, since compared once is
    enough.
    """
    with copy.open() as one, path.open("rb") as other:
        while chunk := one.read(COMPARED_BYTES):
            if chunk != other.read(len(chunk)):
                return False
    return True
