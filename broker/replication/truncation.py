"""Offset to which a follower truncates to agree with its leader (KIP-101, KIP-279, KIP-595).

Never the high watermark: committed records may lie beyond the follower's, and records below it may
come from a leader that was elected uncleanly.
"""

from __future__ import annotations

from typing import Final, Protocol

UNDEFINED: Final = -1


class EpochEnds(Protocol):
    """A log, as far as its leader epochs are concerned."""

    @property
    def log_end_offset(self) -> int:
        """Of the next record."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Greatest known epoch up to `epoch`, and the offset at which it ends (KIP-101).

        (-1, -1) if `epoch` is newer than all; (`epoch`, start of the first) if older than all.
        """


def agreed_end(log: EpochEnds, leader_epoch: int, leader_end: int) -> int:
    """Offset up to which `log` may agree with the leader's; it is truncated to that.

    The leader's greatest epoch not above ours is `leader_epoch`, which ends at `leader_end`. If we
    do not have that epoch, the remainder may still be too long, and the next fetch will show it.
    """
    end = log.log_end_offset
    if leader_epoch == UNDEFINED:
        return min(leader_end, end)
    ours, our_end = log.end_offset_for_epoch(leader_epoch)
    if our_end == UNDEFINED:
        return min(leader_end, end)
    if ours != leader_epoch:
        return min(our_end, end)
    return min(our_end, leader_end, end)
