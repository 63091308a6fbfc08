"""A shard's unstored state of groups of one kind: sessions and pending work.

A group has one timer, for the earliest deadline that was known when it was started. A heartbeat
only moves its member's deadline; the timer checks all members when it fires, which is once in a
session timeout as long as all are alive. Deadlines go by the timers' clock, because the wall clock
may be set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from coordinator.effects import Effects
from coordinator.ports import TimerKey, TimerKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from coordinator.ports import Timers
    from protocol.errors import ErrorCode

NEVER_MS: Final = 2**63 - 1
FENCED_AT_ONCE: Final = 50
"""Members that one timer removes; it goes off again at once for more."""
REMOVAL_RETRY_MS: Final = 500
"""Time after which a failed removal of a member is retried. Fixed, as in Apache Kafka."""


class Revocation(NamedTuple):
    """Deadline by which a member has to revoke partitions, and the epoch that it has to leave."""

    deadline_ms: int
    member_epoch: int


@dataclass(slots=True)
class Watch:
    """Unstored state of one group."""

    sessions: dict[str, int] = field(default_factory=dict)
    """Deadline by member."""
    loaded_deadline_ms: int = NEVER_MS
    """The deadline of members that have sent nothing since the group was loaded."""
    revocations: dict[str, Revocation] = field(default_factory=dict)
    timer_due_ms: int = NEVER_MS


class WatchedMember(Protocol):
    """A member as its sessions need it."""

    @property
    def member_id(self) -> str:
        """Its id."""

    @property
    def member_epoch(self) -> int:
        """The epoch that it is in."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """Time it may take to revoke partitions or tasks."""


MemberT = TypeVar("MemberT", bound=WatchedMember)
WatchT = TypeVar("WatchT", bound=Watch)


class WatchedGroup(Protocol[MemberT]):
    """A group as the sessions of its members need it."""

    @property
    def group_id(self) -> str:
        """Its id."""

    @property
    def members(self) -> dict[str, MemberT]:
        """Members by id."""


class SessionSettings(Protocol):
    """The settings of the kind of group."""

    def session_timeout_of(self, group_id: str) -> int:
        """The session timeout of a group's members in milliseconds."""


class Watches(Generic[WatchT]):
    """By group id. Groups that heartbeats are about to create have one as well."""

    def __init__(
        self,
        settings: SessionSettings,
        timers: Timers,
        kind: TimerKind,
        make: Callable[[], WatchT],
    ) -> None:
        self._settings = settings
        self._timers = timers
        self._kind = kind
        self._make = make
        self._by_group: dict[str, WatchT] = {}

    @property
    def now_ms(self) -> int:
        """The time of the timers' clock."""
        return self._timers.now_ms

    def of(self, group_id: str) -> WatchT:
        """The watch of a group."""
        watch = self._by_group.get(group_id)
        if watch is None:
            watch = self._by_group[group_id] = self._make()
        return watch

    def forget(self, group_id: str) -> None:
        """The group is removed."""
        if self._by_group.pop(group_id, None) is not None:
            self._timers.cancel(self._key(group_id))

    def clear(self) -> None:
        """The shard goes elsewhere."""
        for group_id in list(self._by_group):
            self.forget(group_id)

    def loaded(self, group: WatchedGroup[Any]) -> None:
        """Begin the sessions of a group that was read from the log."""
        watch = self.of(group.group_id)
        timeout_ms = self._settings.session_timeout_of(group.group_id)
        watch.loaded_deadline_ms = self.now_ms + timeout_ms
        self.wake_by(group.group_id, watch, watch.loaded_deadline_ms)

    def touch(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """Extend a member's session, by its own session timeout or by the group's."""
        watch = self.of(group_id)
        if timeout_ms is None:
            timeout_ms = self._settings.session_timeout_of(group_id)
        deadline_ms = self.now_ms + timeout_ms
        watch.sessions[member_id] = deadline_ms
        self.wake_by(group_id, watch, deadline_ms)

    def await_revocation(self, group_id: str, member: WatchedMember) -> None:
        """Give a member its rebalance timeout to give up partitions."""
        watch = self.of(group_id)
        deadline_ms = self.now_ms + member.rebalance_timeout_ms
        watch.revocations[member.member_id] = Revocation(deadline_ms, member.member_epoch)
        self.wake_by(group_id, watch, deadline_ms)

    def resume_revocation(self, group_id: str, member: WatchedMember) -> None:
        """The same for a member that had to before the group was loaded from the log."""
        if member.member_id not in self.of(group_id).revocations:
            self.await_revocation(group_id, member)

    def end_revocation(self, group_id: str, member_id: str) -> None:
        """Note that the member has revoked its partitions or tasks."""
        self.of(group_id).revocations.pop(member_id, None)

    def forget_member(self, group_id: str, member_id: str) -> None:
        """The member is removed."""
        watch = self.of(group_id)
        watch.sessions.pop(member_id, None)
        watch.revocations.pop(member_id, None)

    def not_removed(
        self,
        group_id: str,
        member_ids: Iterable[str],
        _: ErrorCode,
        __: int,
    ) -> Effects:
        """Retry a removal of members that could not be stored, unless they heartbeat before.

        They have no other timer: a dead member would own its partitions for ever.
        """
        watch = self.of(group_id)
        deadline_ms = self.now_ms + REMOVAL_RETRY_MS
        for member_id in member_ids:
            watch.sessions.setdefault(member_id, deadline_ms)
        self.wake_by(group_id, watch, deadline_ms)
        return Effects()

    def expired(self, group: WatchedGroup[MemberT]) -> list[MemberT]:
        """Members that were silent, or kept partitions, for too long; restarts the timer."""
        watch, now_ms = self.of(group.group_id), self.now_ms
        watch.timer_due_ms = NEVER_MS
        sessions, default_ms = watch.sessions, watch.loaded_deadline_ms
        found: dict[str, MemberT] = {}
        next_ms = NEVER_MS
        for member_id, member in group.members.items():
            deadline_ms = sessions.get(member_id, default_ms)
            if deadline_ms <= now_ms:
                found[member_id] = member
            elif deadline_ms < next_ms:
                next_ms = deadline_ms
        for member_id, (deadline_ms, epoch) in list(watch.revocations.items()):
            late = group.members.get(member_id)
            if late is None or late.member_epoch != epoch:
                del watch.revocations[member_id]
            elif deadline_ms <= now_ms:
                found[member_id] = late
            else:
                next_ms = min(next_ms, deadline_ms)
        if len(found) > FENCED_AT_ONCE:
            next_ms = now_ms + 1
        if next_ms != NEVER_MS:
            self.wake_by(group.group_id, watch, next_ms)
        return list(found.values())[:FENCED_AT_ONCE]

    def wake_by(self, group_id: str, watch: Watch, deadline_ms: int) -> None:
        """Have the group's timer go off by then."""
        if deadline_ms < watch.timer_due_ms:
            watch.timer_due_ms = deadline_ms
            self._timers.start(self._key(group_id), max(deadline_ms - self.now_ms, 0))

    def _key(self, group_id: str) -> TimerKey:
        return TimerKey(group_id, self._kind)
