"""The observer's view of its log, and the place where the log parts from the leader's."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from protocol.errors import ApiError
from protocol.records.batch import iterate_headers

if TYPE_CHECKING:
    from protocol.metadata_log.snapshots import SnapshotId
    from protocol.wire import Buffer


class SoundPrefix(NamedTuple):
    """The part of a leader's records that can be appended."""

    length: int
    """Size in bytes."""
    problem: str
    """Fault of the batch that follows; empty if there is none."""


class LogView(NamedTuple):
    """One replica's log at one moment."""

    end_offset: int
    high_watermark: int
    epochs: tuple[tuple[int, int], ...] = ()
    """Each leader epoch and the offset at which it begins, ascending."""
    snapshot: SnapshotId | None = None
    """The newest one on the disk."""

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record, in the log or else in the snapshot; 0 if there is none."""
        if self.epochs:
            return self.epochs[-1][0]
        return 0 if self.snapshot is None else self.snapshot.epoch

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Greatest known epoch up to `epoch`, and the offset at which it ends.

        As `KafkaMetadataLog.endOffsetForEpoch`: one that is newer than all, and one that is asked
        of an empty log, ends where the log does.
        """
        if not self.epochs or epoch > self.epochs[-1][0]:
            return self.last_epoch, self.end_offset
        following = bisect_right(self.epochs, epoch, key=itemgetter(0))
        if following == 0:
            return epoch, self.epochs[0][1]
        ends = self.end_offset if following == len(self.epochs) else self.epochs[following][1]
        return self.epochs[following - 1][0], ends

    def agreed_end(self, epoch: int, end_offset: int) -> int:
        """Offset up to which this log agrees with one in which `epoch` ends at `end_offset`."""
        own_epoch, own_end = self.end_of_epoch(epoch)
        return min(own_end, end_offset) if own_epoch == epoch else own_end

    def sound_prefix(self, records: Buffer, leader_epoch: int) -> SoundPrefix:
        """The whole batches at the beginning of `records` that follow this log, and each other.

        None is of a later epoch than the leader's (KAFKA-18723). Checksums are not looked at.
        """
        expected, length = self.end_offset, 0
        try:
            for position, header in iterate_headers(records):
                if header.base_offset != expected:
                    return SoundPrefix(length, f"offset {header.base_offset}, not {expected}")
                if header.partition_leader_epoch > leader_epoch:
                    return SoundPrefix(length, f"epoch {header.partition_leader_epoch}")
                expected = header.next_offset
                length = position + header.size_in_bytes
        except ApiError as error:
            return SoundPrefix(length, error.message)
        return SoundPrefix(length, "")
