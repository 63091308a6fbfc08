"""Effects of an answer, for the observer's owner to carry out in the order given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from protocol.metadata_log.snapshots import SnapshotId
    from protocol.wire import Buffer

NO_LEADER = -1


class Election(NamedTuple):
    """The newest epoch that is known, and its leader."""

    epoch: int = 0
    leader_id: int = NO_LEADER


@dataclass(frozen=True, slots=True)
class SaveElection:
    """Have `quorum-state` on the disk before anything of the epoch is used."""

    election: Election


@dataclass(frozen=True, slots=True)
class Append:
    """Append the batches that are sound (`LogView.sound_prefix`), in pieces if there are many.

    One that is not, and what comes after it, is left out: see `Observer.left_out`.
    """

    records: Buffer
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the log: nothing from this offset on is part of it."""

    offset: int


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Raise the high watermark to what the leader's is, at most to the log's end; never lower it.

    The first one says how far this replica has to come to have caught up.
    """

    offset: int


@dataclass(frozen=True, slots=True)
class BeginSnapshot:
    """Begin a file for a snapshot of the leader."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class ExtendSnapshot:
    """Append to that file."""

    data: Buffer


@dataclass(frozen=True, slots=True)
class AbandonSnapshot:
    """Remove that file."""


@dataclass(frozen=True, slots=True)
class ReplaceLog:
    """Put the snapshot in place, unless it is, and drop the log: it goes on at its end offset."""

    snapshot_id: SnapshotId


Effect = (
    SaveElection
    | Append
    | Truncate
    | AdvanceHighWatermark
    | BeginSnapshot
    | ExtendSnapshot
    | AbandonSnapshot
    | ReplaceLog
)
