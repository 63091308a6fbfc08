"""Cutting off the end of a log, or all of it, and bringing in line what depends on its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.producer.producer_recovery import read_producers, remove_others
from storage.producer.producer_state import ProducerState

if TYPE_CHECKING:
    from storage.log.log_contents import LogContents
    from storage.log.log_rules import LogRules


class Truncation:
    """The cut of one log. All files that it needs are opened before its first step."""

    __slots__ = ("_files", "_offsets", "_producers", "_rules")

    def __init__(self, contents: LogContents, rules: LogRules) -> None:
        self._files = contents.files
        self._offsets = contents.offsets
        self._producers = contents.producers
        self._rules = rules

    def truncate_to(self, offset: int) -> bool:
        """Drop everything at and after `offset`; return whether there was anything.

        An epoch that starts at the log end and has no records is removed in any case: as long as it
        is known, the log appears to diverge from another leader's.
        """
        files, offsets = self._files, self._offsets
        segments = files.segments
        if offset >= offsets.log_end_offset:
            with files.place.directory:
                files.epochs.truncate_from_end(offset)
            return False
        if offset < segments[0].base_offset:
            self.start_over_at(offset)
            return True
        with files.place.directory:
            cut = segments[segments.floor(offset)].prepare_truncation(offset)
            bounds = (min(offsets.log_start_offset, offset), offset)
            producers = read_producers(files.snapshots, segments, bounds)
            files.discard(segments.take_from(offset))
            cut()
            files.epochs.truncate_from_end(offset)
            is_flushed = offsets.cut_to(offset)
            self._bring_in_line(producers, is_flushed=is_flushed)
        return True

    def start_over_at(self, offset: int) -> None:
        """Drop everything; the next record will have `offset`."""
        files = self._files
        segments = files.segments
        with files.place.directory:
            created_ms = segments.active.created_ms
            config = self._rules.config
            new = files.new_segment_instead_of(list(segments), offset, config, created_ms)
            segments.replace_all(new)
            files.snapshots.remove_after(-1)
            files.epochs.clear()
            is_flushed = self._offsets.start_over_at(offset)
            self._bring_in_line(ProducerState(), is_flushed=is_flushed)

    def _bring_in_line(self, producers: ProducerState, *, is_flushed: bool) -> None:
        offsets = self._offsets
        offsets.check()
        assert producers.newest_offset < offsets.log_end_offset, (producers.newest_offset, offsets)
        remove_others(self._files.snapshots, (offsets.log_start_offset, offsets.log_end_offset))
        self._producers.become(producers)
        self._producers.note_high_watermark(offsets.high_watermark)
        directory = self._files.place.directory
        if is_flushed and directory.on_cut is not None:
            directory.on_cut()
