"""Read the segments that are to be cleaned: whole batches, at a pace, and aborted transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.records.batch import HEADER_BYTES, MAGIC, BatchHeader, parse_header
from storage.errors import DamagedFileError
from storage.segment import file_names
from storage.segment.aborted_index import AbortedIndex, AbortedTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage.compaction.job import CleaningJob, SourceSegment
    from storage.filesystem import FileSystem


TOGETHER_BYTES: Final = 4 << 20
TOGETHER_BATCHES: Final = 4096
"""Limits of one hand-out, exceeded by one batch at most; reads may be smaller."""


class SourceReader:
    """Reads the segments of a job; the broker's files are not changed."""

    def __init__(
        self, job: CleaningJob, filesystem: FileSystem, throttle: Callable[[int], None]
    ) -> None:
        self._job = job
        self._filesystem = filesystem
        self._throttle = throttle
        self.bytes_read = 0

    def batches(self, segment: SourceSegment) -> Iterator[list[tuple[BatchHeader, memoryview]]]:
        """Header and bytes of each batch; some come together, so that each costs less.

        The bytes stay as they are for as long as they are held. Raises DamagedFileError where no
        whole batch is.
        """
        path = file_names.segment_file(self._job.directory, segment.base_offset, file_names.LOG)
        file = self._filesystem.open(path)
        batches: list[tuple[BatchHeader, memoryview]] = []
        position = collected = 0
        wanted = usual = max(self._job.limits.buffer_bytes, HEADER_BYTES)
        while position < segment.size:
            data = file.read_at(position, min(wanted, segment.size - position))
            self.bytes_read += len(data)
            self._throttle(len(data))
            chunk = memoryview(data)
            start = 0
            wanted = usual
            while start + HEADER_BYTES <= len(chunk):
                header = parse_header(data, start)
                end = start + header.size_in_bytes
                if end < start + HEADER_BYTES or header.magic != MAGIC:
                    break
                if end > len(chunk):
                    wanted = max(usual, end - start)
                    break
                batches.append((header, chunk[start:end]))
                start = end
            position += start
            collected += start
            is_over = start == 0 and (wanted == usual or position + wanted > segment.size)
            is_enough = collected >= TOGETHER_BYTES or len(batches) >= TOGETHER_BATCHES
            if is_enough or position == segment.size or is_over:
                yield batches
                batches = []
                collected = 0
            if is_over:
                raise DamagedFileError(f"{path}: no batch at byte {position}")

    def aborted_transactions(self) -> list[AbortedTransaction]:
        """All that the transaction indexes of the log say."""
        job = self._job
        base_offsets = [*(segment.base_offset for segment in job.segments), *job.later_segments]
        return [
            aborted
            for base_offset in base_offsets
            for aborted in AbortedIndex(self._filesystem, job.directory, base_offset).entries()
        ]
