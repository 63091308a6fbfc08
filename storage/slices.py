"""A region of a `.log` file that holds what a reader asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.filesystem import File


@dataclass(frozen=True, slots=True)
class Slice:
    """Batches as they stand on disk; the last may be cut off. It keeps its file open."""

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

    def tobytes(self) -> bytes:
        """Read the region."""
        return self.file.read_at(self.position, self.length) if self.file is not None else b""
