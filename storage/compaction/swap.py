"""Swap in a cleaned segment for those it replaces, in steps that recover from any crash.

    written and on the disk    00.log.cleaned  00.index.cleaned ...
    1  promised                00.log.swap     00.index.swap ...       from here on it will happen
    2  old ones set aside      00.log.deleted  50.log.deleted ...
    3  in place                00.log          00.index ...
    4  in memory               one segment instead of two

A start that finds `.cleaned` files undoes the group they belong to; one that finds only `.swap`
files finishes steps 2 and 3 (`segment_files`). To keep groups apart, the remains of an earlier
cleaning are removed before the next begins (`discard_cleaned`); the group being written meanwhile
has greater offsets. The names change in one callback of the event loop, so no reader sees an
intermediate state; the files set aside are removed later, for the sake of readers that hold them.
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
        """Return whether the log was neither truncated nor taken offline since."""
        return (
            self.log.offsets.truncations == self._truncations and self.log.directory.failure is None
        )

    def swap_in(self, group: CleanedGroup) -> list[str] | None:
        """Put a group in place; returns files to remove later.

        Returns None, without effect, if the log was truncated, or retention removed segments of the
        group. Raises FileNotFoundError, without effect, if a file of the new segment is missing.
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
            # The .log file first: an index with its .log not yet renamed would be taken for one of
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
    """Remove the files of an interrupted cleaning; OSError if the directory is missing or faulty.

    Until it succeeds, no cleaning may begin: after a crash in a later swap, these files could be
    taken for part of that.

    LogDirectoryError if the directory is offline, or the log deleted: the files there may be of
    another one.
    """
    if log.directory.failure is not None:
        raise log.directory.failure.with_traceback(None)
    filesystem = log.directory.disk.filesystem
    for entry in filesystem.scan(log.path):
        if entry.name.endswith(file_names.CLEANED):
            filesystem.remove(f"{log.path}/{entry.name}")
