"""The log of `__cluster_metadata-0` with its snapshots: how it is opened, cut, replaced, cleaned.

    snapshot       S1                S2
    log                  [start ...... | ..................... end)
                                      S2.end_offset

What is before the log start offset is in a snapshot that ends at it or later: so the log begins at
0, or there is one. Segments go only by snapshots, not by age or size (`KafkaMetadataLog`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from config.topic import TopicConfig
from protocol.errors import ApiError
from protocol.uuids import METADATA_TOPIC_UUID
from storage.directory import partition_metadata
from storage.errors import DirectoryRefusedError, LogDirectoryError
from storage.log.log_loader import LoadHints, create_log, load_log
from storage.log.log_settings import LogPlace, LogSettings
from storage.metadata_log import quorum_state
from storage.metadata_log.snapshot_files import SnapshotFiles, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.metadata_log.snapshots import SnapshotId
    from protocol.wire import Buffer
    from storage.directory.log_directory import LogDirectory
    from storage.log.log import Log
    from storage.metadata_log.quorum_state import QuorumState
    from storage.metadata_log.snapshot_files import PartialSnapshot

TOPIC: Final = "__cluster_metadata"
UNLIMITED: Final = -1


class MetadataLogSettings(NamedTuple):
    """Settings of the log, out of the node's configuration."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    retention_bytes: int = 100 << 20
    """Limit of log and snapshots together; negative for none, as `retention_ms`."""
    retention_ms: int = 604_800_000


class MetadataLog:
    """One caller at a time. Every method may raise LogDirectoryError."""

    def __init__(self, log: Log, snapshots: SnapshotFiles, settings: MetadataLogSettings) -> None:
        """Bring both in line, as a crash between two steps may have left them."""
        self.log = log
        self.snapshots = snapshots
        self._settings = settings
        self.notes: list[str] = []
        """Faults found when the log was opened, a line each."""
        self._remove(snapshots.take_before_offset(log.log_start_offset))
        newest = snapshots.newest
        if newest is None:
            if log.log_start_offset > 0:
                raise DirectoryRefusedError(
                    f"{log.path} begins at offset {log.log_start_offset}, and there is no snapshot "
                    f"of what came before"
                )
        elif self._is_beyond(newest):
            self.notes.append(f"{log.path} ends at {log.log_end_offset}: goes on at {newest}")
            self._remove(self._start_over_at(newest))
        else:
            log.advance_high_watermark(newest.end_offset)

    @classmethod
    def open(
        cls,
        directory: LogDirectory,
        settings: MetadataLogSettings,
        log_settings: LogSettings,
        now_ms: int,
    ) -> MetadataLog:
        """Create what is not there, and check all of what is, as after each stop (`UnifiedLog`).

        Raises DirectoryRefusedError and DamagedFileError.
        """
        place = LogPlace(directory, TOPIC, 0, METADATA_TOPIC_UUID)
        config = TopicConfig(
            segment_bytes=settings.segment_bytes,
            segment_ms=settings.segment_ms,
            retention_ms=UNLIMITED,
            retention_bytes=UNLIMITED,
        )
        if directory.disk.filesystem.exists(place.path):
            log, outcome = load_log(place, config, log_settings, LoadHints(was_clean=False))
            notes = outcome.notes
            if partition_metadata.read(directory.disk.filesystem, place.path) is None:
                partition_metadata.write(directory.disk.filesystem, place.path, METADATA_TOPIC_UUID)
        else:
            log, notes = create_log(place, config, log_settings, now_ms), []
        opened = cls(log, SnapshotFiles(place), settings)
        opened.notes[:0] = notes
        return opened

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """Leader epochs and their start offsets, ascending."""
        return tuple(self.log.epochs.entries())

    # The log

    def append(self, records: Buffer, now_ms: int) -> str:
        """Append whole batches; returns what is wrong with one that was left out, if one was."""
        try:
            self.log.append_as_follower(records, now_ms)
        except LogDirectoryError:
            raise
        except ApiError as error:
            return error.message
        return ""

    def truncate_to(self, offset: int) -> None:
        """Cut the log; never below the high watermark."""
        assert offset >= self.log.high_watermark, (offset, self.log)
        self.log.truncate_to(offset)

    def replace_by(self, snapshot_id: SnapshotId) -> list[str]:
        """Drop the log, which goes on after a complete snapshot; returns files to remove later."""
        assert snapshot_id == self.snapshots.newest, (snapshot_id, self.snapshots.ids)
        return self._start_over_at(snapshot_id)

    def adopt(self, finished: PartialSnapshot) -> list[str]:
        """Count a snapshot of this node's as complete, unless the log has passed it by.

        Returns files to remove later.
        """
        self.snapshots.adopt(finished)
        return self.snapshots.take_before_offset(self.log.log_start_offset)

    def clean(self, now_ms: int) -> list[str]:
        """Drop the oldest snapshots, and the segments before the next one, as the limits say.

        Size counts first, then age; the newest snapshot stays. Returns files to remove later.
        """
        removed: list[str] = []
        for is_due in (self._is_too_large, self._is_too_old):
            removed += self._clean_while(is_due, now_ms)
        return removed

    def _clean_while(self, is_due: Callable[[int], bool], now_ms: int) -> list[str]:
        removed: list[str] = []
        ids = self.snapshots.ids
        while len(ids) > 1 and ids[1].end_offset <= self.log.high_watermark and is_due(now_ms):
            following = ids[1]
            self.log.advance_log_start_offset(following.end_offset)
            removed += self.snapshots.take_before(following)
            removed += self.log.delete_expired(now_ms)
        return removed

    def _is_too_large(self, _now_ms: int) -> bool:
        limit = self._settings.retention_bytes
        return 0 <= limit < self.log.size_in_bytes + self.snapshots.size_in_bytes

    def _is_too_old(self, now_ms: int) -> bool:
        limit = self._settings.retention_ms
        return 0 <= limit < now_ms - self.snapshots.timestamp_ms(self.snapshots.ids[0])

    # The quorum

    def read_quorum_state(self) -> QuorumState:
        """Read `quorum-state`; raises DamagedFileError."""
        with self.log.directory:
            return quorum_state.read(self.log.directory.disk.filesystem, self.log.path)

    def write_quorum_state(
        self, state: QuorumState, kraft_version: int, voters: Sequence[int] = ()
    ) -> None:
        """Replace `quorum-state`; waits for the disk, on any thread."""
        content = quorum_state.encode(state, kraft_version, voters)
        with self.log.directory:
            quorum_state.write(self.log.directory.disk.filesystem, self.log.path, content)

    def _is_beyond(self, snapshot_id: SnapshotId) -> bool:
        """Return whether the log ends before a snapshot: a crash followed its download."""
        end_offset, latest_epoch = self.log.log_end_offset, self.log.latest_epoch
        if latest_epoch < 0:
            return snapshot_id.end_offset > end_offset
        return snapshot_id.epoch > latest_epoch or (
            snapshot_id.epoch == latest_epoch and snapshot_id.end_offset > end_offset
        )

    def _start_over_at(self, snapshot_id: SnapshotId) -> list[str]:
        self.log.truncate_fully_and_start_at(snapshot_id.end_offset)
        return self.snapshots.take_before(snapshot_id)

    def _remove(self, paths: Sequence[str]) -> None:
        with self.log.directory:
            for path in paths:
                self.log.directory.disk.filesystem.remove(path)

    def __repr__(self) -> str:
        names = [name_of(one) for one in self.snapshots.ids]
        return f"<MetadataLog {self.log!r} {names}>"
