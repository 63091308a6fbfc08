"""What a shard remembers of consumer groups without storing it, besides sessions."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.watches import Watch, Watches


@dataclass(slots=True)
class ConsumerWatch(Watch):
    """What is remembered of one group."""

    checked_revision: int = -1
    """The revision of the topics as of which the group's epoch is right."""
    checked_epoch: int = 0
    is_hashing: bool = False
    is_assigning: bool = False
    is_resolving: bool = False
    resolved_revision: int = -1
    """The revision of the topics in which its regular expressions were last resolved."""


ConsumerWatches = Watches[ConsumerWatch]
