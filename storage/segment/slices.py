"""A region of a `.log` file that holds what a reader asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.segment.batch_scan import walk_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.records.batch import BatchHeader
    from storage.filesystem import File


@dataclass(slots=True)
class Slice:
    """Batches as they stand on disk; the last may be cut off. It keeps its file open.

    Never changed, but not frozen: one is made for each fetch, and that would take twice as long.
    """

    file: File | None
    """None when the slice is empty."""
    position: int
    length: int
    first_offset: int
    """Base offset of the first batch, which may lie before the offset that was asked for."""
    first_batch_size: int = 0
    """Of the first batch there is, even when the limit was too small to include it."""

    def __len__(self) -> int:
        return self.length

    def headers(self) -> Iterator[tuple[int, BatchHeader]]:
        """Where in the region each whole header of a batch is; reads the headers only."""
        if self.file is not None:
            end = self.position + self.length
            for position, header in walk_headers(self.file, self.position, end):
                yield position - self.position, header

    def tobytes(self) -> bytes:
        """Read the region."""
        return self.file.read_at(self.position, self.length) if self.file is not None else b""
