"""One member of a share group, as stored: what it subscribes to, and what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

Target = Mapping[UUID, frozenset[int]]
"""Topic id → partitions."""

NOTHING: Final[Target] = {}
JOINING_EPOCH: Final = 0
"""The epoch of who joins, or joins again."""
LEAVING_EPOCH: Final = -1
STABLE: Final = 0
"""The only state of a member that is stored."""


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member. Changed only by replacing it."""

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    """What it subscribes to."""
    assigned: Target = field(default_factory=dict)
    rebalance_timeout_ms: int = 0
    """Nobody waits for it to give anything up."""
