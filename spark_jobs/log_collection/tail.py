"""Reading the lines of one log in order, through its files, from where it was left.

A line is what ends with a newline. The last bytes of the file that is written to are left until
theirs comes. Those of a rotated file are a line when nothing was added for a while: whoever held
the file open has then let go of it, and only then the next file is begun. Lines longer than a
limit come in pieces, lines without a byte not at all.

After each line `positions` says what has been read with it: a line and the positions after it,
kept together, are what a restart needs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from spark_jobs.log_collection.log_files import DAMAGED, files_of
from spark_jobs.log_collection.log_positions import (
    HEAD_BYTES,
    TAIL_BYTES,
    Assigned,
    Position,
    assign,
    digest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from pathlib import Path

    from spark_jobs.log_collection.log_files import LogFile

CHUNK_BYTES = 1 << 18
RECENT_BYTES = 1 << 16
MOST_POSITIONS = 16
"""Files of a log that are told apart from new ones; older than these are done with."""


class Line(NamedTuple):
    """One line, or a piece of a long one."""

    value: bytes
    """Without the newline."""

    path: Path
    """The file it was read from."""

    offset: int
    """Where in it it begins, unpacked."""

    is_continued: bool
    """The next piece is of the same line."""


@dataclass(frozen=True, slots=True)
class Tailing:
    """How logs are read."""

    settle_seconds: float = 5.0
    """After how long without change a rotated file is left."""

    most_line_bytes: int = 900_000
    """Longer lines are cut."""

    tell: Callable[[str], None] = print
    """Takes a line for a person about what cannot be read, or is lost."""


class TailedLog:
    """One log, read through all its files."""

    def __init__(self, path: Path, positions: Sequence[Position], tailing: Tailing) -> None:
        self.path = path
        self._tailing = tailing
        self._positions = {position.identity: position for position in positions}
        self._reader: FileReader | None = None
        self._damaged: set[LogFile] = set()
        self._told: set[str] = set()

    def lines(self, now: float) -> Iterator[Line]:
        """Yield what is there and was not read yet; `now` is in seconds of the files' clock."""
        files = files_of(self.path)
        reader = self._reader
        if reader is not None and reader.identity not in {file.identity for file in files}:
            yield from self._read(reader)
            if now - os.fstat(reader.stream.fileno()).st_mtime < self._tailing.settle_seconds:
                return
            yield from reader.rest()
            self.close()
        assigned = assign(files, self.positions())
        self._take_over(assigned)
        for file, position in ((each.file, each.position) for each in assigned):
            if file in self._damaged or _is_done(file, position):
                continue
            reader = self._reader_of(file, position)
            yield from self._read(reader)
            if not file.is_rotated:
                return
            if reader.is_damaged:
                self._damaged.add(file)
                continue
            is_settled = now - file.modified_ns / 1e9 >= self._tailing.settle_seconds
            if not (file.is_compressed or is_settled):
                return
            yield from reader.rest()

    def positions(self) -> list[Position]:
        """Return how far the files have been read, with the last line that was yielded."""
        if self._reader is not None:
            self._positions[self._reader.identity] = self._reader.position()
        known = [position for position in self._positions.values() if position.offset]
        return known[-MOST_POSITIONS:]

    def close(self) -> None:
        """Close the file that is open."""
        if self._reader is not None:
            self._positions[self._reader.identity] = self._reader.position()
            self._reader.stream.close()
            self._reader = None

    def _reader_of(self, file: LogFile, position: Position) -> FileReader:
        reader = self._reader
        if reader is not None and (reader.identity, reader.offset) == (
            position.identity,
            position.offset,
        ):
            reader.path = file.path
            return reader
        self.close()
        self._reader = FileReader(file, position)
        return self._reader

    def _read(self, reader: FileReader) -> Iterator[Line]:
        try:
            yield from reader.lines(self._tailing.most_line_bytes)
        except DAMAGED as error:
            self._tell(f"{reader.path}: damaged behind byte {reader.offset:,} ({error})")
            reader.is_damaged = True

    def _take_over(self, assigned: Sequence[Assigned]) -> None:
        """Have the positions in the files' order, with those first whose files are not found."""
        found = {each.position.identity: each.position for each in assigned}
        gone = {}
        known = self.positions()
        self._let_go_unless(found)
        for position in known:
            if any(each.continues(position) for each in assigned):
                continue
            if position.identity not in found:
                gone[position.identity] = position
            if not position.is_whole:
                self._tell(_words_of_loss(self.path, position, found))
        self._positions = gone | found

    def _let_go_unless(self, found: Mapping[tuple[int, int], Position]) -> None:
        """Close a file that holds other bytes now than those that were read of it."""
        reader = self._reader
        if reader is not None:
            position = found.get(reader.identity)
            if position is None or position.offset != reader.offset:
                reader.stream.close()
                self._reader = None

    def _tell(self, words: str) -> None:
        if words not in self._told:
            self._told.add(words)
            self._tailing.tell(words)


def _words_of_loss(log: Path, position: Position, found: Container[tuple[int, int]]) -> str:
    read = f"{position.offset:,} bytes were read"
    if position.identity in found:
        return (
            f"{log}: cut or rewritten after {read}, and no rotated file has them; what followed "
            "them, if anything, is not collected"
        )
    return f"{log}: the file of which {read} is gone; what followed them is not collected"


def _is_done(file: LogFile, position: Position) -> bool:
    return position.is_whole and (file.is_compressed or file.size == position.offset)


class FileReader:
    """An open file, and what of it has been read."""

    def __init__(self, file: LogFile, position: Position) -> None:
        self.path = file.path
        self.identity = file.identity
        self.stream = file.open()
        self.offset = position.offset
        self.is_damaged = False
        self._is_whole = position.is_whole
        self._head = position.head
        before_tail = max(self.offset - TAIL_BYTES, 0)
        self.stream.seek(before_tail)
        self._recent = bytearray(self.stream.read(self.offset - before_tail))
        self._ahead = b""
        self._is_interrupted = False
        """The caller wanted no more lines while there were some in `_ahead`."""

    def position(self) -> Position:
        """Return how far the file has been read."""
        tail = digest(bytes(self._recent[-TAIL_BYTES:]))
        return Position(*self.identity, self.offset, self._head, tail, self._is_whole)

    def lines(self, most: int) -> Iterator[Line]:
        """Yield lines up to the last newline there is now, those longer than `most` in pieces."""
        chunk = self.stream.read1(CHUNK_BYTES)
        while chunk or self._is_interrupted:
            ahead, begin = self._ahead + chunk, 0
            self._is_interrupted = True
            try:
                while True:
                    end = ahead.find(b"\n", begin, begin + most + 1)
                    if end >= 0:
                        after = end + 1
                    elif len(ahead) - begin > most:
                        after = end = begin + most
                    else:
                        break
                    value, offset = ahead[begin:end], self._note(ahead[begin:after])
                    begin = after
                    if value:
                        yield Line(value, self.path, offset, after == end)
                self._is_interrupted = False
            finally:
                self._ahead = ahead[begin:]
            chunk = self.stream.read1(CHUNK_BYTES)

    def rest(self) -> Iterator[Line]:
        """Yield what is left without a newline, and have the file done."""
        self._is_whole = True
        if self._ahead:
            value, self._ahead = self._ahead, b""
            yield Line(value, self.path, self._note(value), is_continued=False)

    def _note(self, consumed: bytes) -> int:
        """Take bytes for read; return where they began."""
        begin = self.offset
        self.offset += len(consumed)
        if len(self._head) < HEAD_BYTES:
            self._head += consumed[: HEAD_BYTES - len(self._head)]
        self._recent += consumed
        if len(self._recent) > RECENT_BYTES:
            del self._recent[:-TAIL_BYTES]
        return begin
