"""One member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinator.ports import Reply
    from protocol.messages.group_membership import JoinGroupResponse, SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""Names of the assignment protocols that a member supports, best first, each with its metadata."""

NEVER_MS = 2**63 - 1


@dataclass(slots=True, eq=False)
class Member:
    """One member of a group, which owns and changes it."""

    member_id: str
    group_instance_id: str | None
    """Set for a static member (KIP-345)."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """True until its first JoinGroup is answered; until then it cannot send heartbeats."""
    joining: Reply[JoinGroupResponse] | None = None
    """The parked answer to its JoinGroup."""
    syncing: Reply[SyncGroupResponse] | None = None
    """The parked answer to its SyncGroup."""
    session_deadline_ms: int = NEVER_MS
    """Expiry of its session by the timers' clock, unless it sends a request before."""
    session_timer_due_ms: int = NEVER_MS
    """Due time of its session timer, which may be earlier: that saves a restart at each
    heartbeat."""

    @property
    def is_static(self) -> bool:
        """True if it keeps its place across restarts of the client."""
        return self.group_instance_id is not None

    @property
    def is_parked(self) -> bool:
        """True if one of its requests is parked: meanwhile its session does not expire."""
        return self.joining is not None or self.syncing is not None

    def metadata_for(self, protocol: str) -> bytes:
        """Its metadata for `protocol`, empty when it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """The first of its protocols that is a candidate; the candidates are supported by all."""
        return next(name for name, _ in self.protocols if name in candidates)
