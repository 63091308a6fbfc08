"""Where a follower cuts its log so that it is a prefix of its leader's (KIP-101, KIP-279, KIP-595).

Never at the high watermark: what was committed may lie beyond the one that the follower knows, and
what lies below it may come from a leader that was elected uncleanly.
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
    """The offset up to which `log` may agree with the leader's; all from there on is cut.

    The leader says that its greatest epoch not above ours is `leader_epoch`, which ends at
    `leader_end`. When we do not have that epoch, what is left may still be too long, and the next
    fetch will tell.
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
