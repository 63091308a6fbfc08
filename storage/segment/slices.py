"""A region of a `.log` file, as the result of a read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.segment.batch_scan import walk_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.records.batch import BatchHeader
    from storage.filesystem import File


class Slice:
    """Batches as they stand on disk; the last may be cut off. It keeps its file open.

    Never changed. No dataclass, as one is made for each fetch: see `AppendInfo`.
    """

    __slots__ = ("file", "first_batch_size", "first_offset", "length", "position")

    def __init__(
        self,
        file: File | None,
        position: int,
        length: int,
        first_offset: int,
        first_batch_size: int = 0,
    ) -> None:
        self.file = file
        """None when the slice is empty."""
        self.position = position
        self.length = length
        self.first_offset = first_offset
        """Base offset of the first batch, which may lie before the requested offset."""
        self.first_batch_size = first_batch_size
        """Of the first batch there is, even when the limit was too small to include it."""

    def __len__(self) -> int:
        return self.length

    def headers(self) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each whole batch header in the region; reads the headers only."""
        if self.file is not None:
            end = self.position + self.length
            for position, header in walk_headers(self.file, self.position, end):
                yield position - self.position, header

    def tobytes(self) -> bytes:
        """Read the region."""
        return self.file.read_at(self.position, self.length) if self.file is not None else b""
