"""State of a log recorded at a clean stop, so that the next start need not inspect its files.

`know` is called once the log is closed, and `open_known` instead of `load_log`. A log is known only
if its directory holds exactly the files that it consists of; anything unusual is left to the
loader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from storage.delays.closed_delays import ClosedDelays
from storage.log.leader_epochs import LeaderEpochs
from storage.log.log import Log
from storage.log.log_contents import LogContents
from storage.log.log_files import LogFiles
from storage.log.log_offsets import LogOffsets
from storage.log.log_rules import has_delays
from storage.log.segments import Segments
from storage.producer.producer_recovery import rebuild, remove_others
from storage.producer.producer_state import ProducerState
from storage.producer.snapshot_files import Snapshots
from storage.segment import file_names
from storage.segment.segment import Segment

if TYPE_CHECKING:
    from uuid import UUID

    from config.topic import TopicConfig
    from storage.filesystem import Stamp
    from storage.log.log_loader import LoadHints
    from storage.log.log_settings import LogPlace, LogSettings


class KnownSegment(NamedTuple):
    """Its files, all of which are there; sizes in bytes."""

    base_offset: int
    size: int
    modified_ms: int
    offset_index_size: int
    time_index_size: int


class Seen(NamedTuple):
    """Identity of a file or directory: the same numbers mean that it is unchanged."""

    inode: int
    changed_ns: int


class KnownLog(NamedTuple):
    """A log that is closed in order."""

    directory: Seen
    active: Seen
    """The `.log` file of the active segment."""
    topic_id: UUID | None
    log_end_offset: int
    has_producers: bool
    """The last snapshot is not empty."""
    epochs: list[tuple[int, int]]
    snapshots: list[int]
    segments: list[KnownSegment]


def seen(stamp: Stamp) -> Seen:
    """Identity of a file or directory that changes with it."""
    return Seen(stamp.inode, stamp.changed_ns)


def know(log: Log) -> KnownLog | None:
    """Describe a log that was just closed; None if the next start should look for itself."""
    files, offsets = log.files, log.offsets
    filesystem = files.place.directory.disk.filesystem
    end_offset = offsets.log_end_offset
    epochs = files.epochs.entries()
    is_empty = end_offset == files.segments[0].base_offset
    is_in_order = files.epochs.is_saved and (is_empty or bool(epochs)) and not log.delays.exist
    directory = filesystem.stamp(log.path)  # before its names: what changes later, changes it
    if not is_in_order or directory is None or offsets.recovery_point < end_offset:
        return None
    stamps = [filesystem.stamp(segment.path) for segment in files.segments]
    segments = [
        known
        for segment, stamp in zip(files.segments, stamps, strict=True)
        if stamp is not None and (known := _know_segment(segment, stamp)) is not None
    ]
    active = stamps[-1]
    is_whole = active is not None and len(segments) == len(stamps)
    if not is_whole or not _holds(set(filesystem.names(log.path)), log):
        return None
    assert active is not None
    return KnownLog(
        seen(directory),
        seen(active),
        log.topic_id,
        end_offset,
        bool(log.producers.producers),
        epochs,
        files.snapshots.offsets,
        segments,
    )


def know_delays(log: Log) -> ClosedDelays | None:
    """Describe the delay indexes of a log that was closed; None where nothing waits, or may."""
    if not (has_delays(log.config) or log.delays.exist):
        return None
    stamp = log.directory.disk.filesystem.stamp(log.path)
    sizes = {one.base_offset: one.delays.size for one in log.segments if one.delays is not None}
    held = {base_offset: size for base_offset, size in sizes.items() if size}
    return None if stamp is None else ClosedDelays(log.name, stamp.inode, held)


def open_known(
    place: LogPlace, known: KnownLog, config: TopicConfig, settings: LogSettings, hints: LoadHints
) -> Log | None:
    """Open a log whose directory was not changed since; None if that must be done by looking.

    Raises LogDirectoryError.
    """
    first, end_offset = known.segments[0].base_offset, known.log_end_offset
    start_offset = max(hints.log_start_offset, first)
    if start_offset > end_offset:
        return None
    with place.directory:
        disk = place.directory.disk
        segments = [
            Segment(disk, place.path, each.base_offset, config, each.modified_ms)
            for each in known.segments
        ]
        active = segments[-1]
        stamp = disk.filesystem.stamp(active.path)
        if stamp is None or seen(stamp) != known.active:
            return None
        for segment, each in zip(segments, known.segments, strict=True):
            segment.adopt(each.size, each.offset_index_size, each.time_index_size)
            if segment is not active:
                segment.doubt_end()
        place.topic_id = known.topic_id
        epochs = LeaderEpochs(disk, place.path)
        epochs.restore(known.epochs)
        snapshots = Snapshots(disk.filesystem, place.path, known.snapshots)
        offsets = LogOffsets(
            start_offset,
            end_offset,
            end_offset,
            min(max(hints.high_watermark, start_offset), end_offset),
            min(hints.cleaned_offset, end_offset),
        )
        files = LogFiles(place, Segments(segments), epochs, snapshots)
        contents = LogContents(files, offsets, ProducerState())
        epochs.truncate_from_end(end_offset + 1)
        epochs.truncate_from_start(start_offset)
        if known.snapshots:
            _settle_producers(contents, has_any=known.has_producers)
        return Log(contents, config, settings)


def _know_segment(segment: Segment, stamp: Stamp) -> KnownSegment | None:
    offsets, times = segment.offset_index.size_when_cut, segment.time_index.size_when_cut
    if stamp.size != segment.size or offsets is None or times is None:
        return None
    return KnownSegment(segment.base_offset, stamp.size, stamp.modified_ms, offsets, times)


def _holds(names: set[str], log: Log) -> bool:
    """Return whether a directory with these names holds the files of a log, and no others."""
    needed = {
        f"{base_offset:020d}{suffix}"
        for base_offset in log.segments.base_offsets
        for suffix in (file_names.LOG, file_names.OFFSET_INDEX, file_names.TIME_INDEX)
    }
    for offset in log.files.snapshots.offsets:
        needed.add(f"{offset:020d}{file_names.SNAPSHOT}")
    if log.topic_id is not None:
        needed.add(file_names.PARTITION_METADATA)
    others = names - needed
    others.discard(file_names.LEADER_EPOCHS)
    for base_offset in log.segments.base_offsets if others else ():
        others.discard(f"{base_offset:020d}{file_names.TRANSACTION_INDEX}")
    return needed <= names and not others


def _settle_producers(contents: LogContents, *, has_any: bool) -> None:
    segments, snapshots = contents.files.segments, contents.files.snapshots
    bounds = contents.offsets.log_start_offset, contents.offsets.log_end_offset
    if has_any:
        rebuild(contents.producers, snapshots, segments, bounds)
        contents.producers.note_high_watermark(contents.offsets.high_watermark)
    else:
        remove_others(snapshots, bounds)
    snapshots.remove_strays(segments.base_offsets)
