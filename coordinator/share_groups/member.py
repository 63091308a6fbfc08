"""One member of a share group, as stored: its subscription and its current assignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from coordinator.modern_groups.epochs import JOINING_EPOCH, NO_EPOCH

if TYPE_CHECKING:
    from coordinator.modern_groups.assignments import Target

STABLE: Final = 0
"""The only state of a member that is stored."""


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member. Changed only by replacing it."""

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = NO_EPOCH
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    """Subscribed topics."""
    assigned: Target = field(default_factory=dict)
    rebalance_timeout_ms: int = 0
    """Always 0: its revocations are not awaited."""
