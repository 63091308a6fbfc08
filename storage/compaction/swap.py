"""Put a cleaned segment in the place of those it replaces, so that a crash at any point is mended.

    written and on the disk    00.log.cleaned  00.index.cleaned ...
    1  promised                00.log.swap     00.index.swap ...       from here on it will happen
    2  old ones set aside      00.log.deleted  50.log.deleted ...
    3  in place                00.log          00.index ...
    4  in memory               one segment instead of two

A start that finds `.cleaned` files undoes the group they belong to; one that finds only `.swap`
files finishes steps 2 and 3 (`segment_files`). So that it can tell what belongs together, what an
earlier cleaning left goes before the next begins (`discard_cleaned`); what is being written of the
next group meanwhile has greater offsets. The names change on the event
loop without a pause, so nobody sees the log in between; the files set aside go later, for readers
that hold them.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from storage.segment import file_names
from storage.segment.segment import Segment

if TYPE_CHECKING:
    from storage.compaction.job import CleanedGroup
    from storage.log.log import Log


class LogUnderCleaning:
    """The log of a job as it was when the job began."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._segments = {segment.base_offset: segment for segment in log.segments}
        self._truncations = log.offsets.truncations

    def is_as_it_was(self) -> bool:
        """Whether the log was neither cut nor went offline since."""
        return (
            self.log.offsets.truncations == self._truncations and self.log.directory.failure is None
        )

    def swap_in(self, group: CleanedGroup) -> list[str] | None:
        """Put a group in place; returns files to remove later.

        None, and nothing was done, when the log is not as it was: cut, or segments of the group
        given up by retention. FileNotFoundError, and nothing was done, when a file of the new
        segment is missing.
        """
        log = self.log
        first = log.segments.floor(group.sources[0])
        sources = [self._segments[base_offset] for base_offset in group.sources]
        present = [
            log.segments[index]
            for index in range(first, min(first + len(sources), len(log.segments) - 1))
        ]
        if not self.is_as_it_was() or present != sources:
            return None
        filesystem = log.directory.disk.filesystem
        paths = group.paths(log.path)
        for path in paths:
            if not filesystem.exists(path + file_names.CLEANED):
                missing = path + file_names.CLEANED
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), missing)
        with log.directory:
            # The .log file first: an index whose .log is still a promise would be taken for one of
            # before.
            for path in paths:
                filesystem.rename(path + file_names.CLEANED, path + file_names.SWAP)
            removals = [path for segment in sources for path in segment.mark_deleted()]
            for path in paths:
                filesystem.rename(path + file_names.SWAP, path)
        cleaned = Segment(
            log.directory.disk, log.path, group.sources[0], log.config, group.modified_ms
        )
        is_adopted = cleaned.adopt(group.size, group.offset_index_size, group.time_index_size)
        assert is_adopted, "the index files were written as they are counted"
        if group.delay_index_size:
            cleaned.adopt_delays(group.delay_index_size)
        log.segments.replace(first, len(sources), cleaned)
        with log.directory:
            for segment in sources[1:]:
                log.files.snapshots.remove(segment.base_offset)
        return removals


def discard_cleaned(log: Log) -> None:
    """Remove what an interrupted cleaning left; OSError when the directory is gone or sick.

    As long as it fails, no cleaning may begin: should the broker die in a later swap, what is left
    here could be taken for part of that.

    LogDirectoryError when it failed before, or when the log was deleted: what lies there may be of
    another one.
    """
    if log.directory.failure is not None:
        raise log.directory.failure.with_traceback(None)
    filesystem = log.directory.disk.filesystem
    for entry in filesystem.scan(log.path):
        if entry.name.endswith(file_names.CLEANED):
            filesystem.remove(f"{log.path}/{entry.name}")
