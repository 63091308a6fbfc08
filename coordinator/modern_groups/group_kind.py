"""Interface of the kinds of group, all but the classic one, to a shard.

A group id belongs to one group, of one kind. Offsets are stored alike for all kinds; the kind
decides who may store, read and delete them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from coordinator.consumer_groups.classic_members.downgrade import Downgraded
    from coordinator.effects import Effects
    from coordinator.groups.group import ClassicGroup
    from coordinator.ports import MemberIds, TimerKey, TimerKind, Timers
    from coordinator.records import KeyOfKind, OffsetsRecord
    from coordinator.topics import Topics
    from protocol.messages.groups import ListGroupsResponse
    from protocol.schema import Coded


class Committing(NamedTuple):
    """Identity of the committing member."""

    member_id: str
    instance_id: str | None
    epoch: int


class CommittedPartition(NamedTuple):
    """Partition of a commit."""

    topic: str
    topic_id: UUID | None
    """None for a topic that does not exist."""
    partition: int


class GroupKind(Protocol):
    """The groups of one kind in a shard. Methods that take a group's id are asked of its kind."""

    @property
    def name(self) -> str:
        """The type of group that ListGroups shows."""

    @property
    def key_classes(self) -> Collection[type[KeyOfKind]]:
        """The keys of its records."""

    @property
    def timers(self) -> Collection[TimerKind]:
        """The timers that `expire` is called for."""

    @property
    def group_ids(self) -> Collection[str]:
        """All groups of this kind."""

    def __contains__(self, group_id: object, /) -> bool:
        """Return whether there is such a group of this kind."""

    # Life

    def replay(self, key: KeyOfKind, value: Coded | None) -> None:
        """Apply one record."""

    def on_loaded(self) -> None:
        """The log has been replayed: members' sessions begin."""

    def on_unloaded(self) -> None:
        """Called when the shard moves to another broker, or this one stops."""

    def expire(self, key: TimerKey, now_ms: int) -> Effects:
        """Called when a group's timer fires; the group may no longer exist."""

    # One group

    def has_members(self, group_id: str) -> bool:
        """Return whether it has members, so that it can be neither deleted nor replaced."""

    def consumed_topics(self, group_id: str) -> AbstractSet[str]:
        """Return the topics whose offsets are kept, since members consume them."""

    def tombstones(self, group_id: str) -> list[OffsetsRecord]:
        """Return the records that delete the group, but for its offsets."""

    def check_commit(
        self,
        group_id: str,
        who: Committing,
        api_version: int,
        partitions: Callable[[], Iterable[CommittedPartition]],
    ) -> None:
        """Raise ApiError unless an OffsetCommit is to be stored."""

    def check_transactional_commit(
        self,
        group_id: str,
        who: Committing,
        api_version: int,
        partitions: Callable[[], Iterable[CommittedPartition]],
    ) -> None:
        """Raise ApiError unless a TxnOffsetCommit is to be stored."""

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Raise ApiError unless positions may be read."""

    # All groups

    def listed(
        self, states: Collection[str], types: Collection[str]
    ) -> Iterator[ListGroupsResponse.Group]:
        """Groups in one of `states` and `types`, ignoring case; an empty filter admits all."""


class GroupRegistry(NamedTuple):
    """The shard's interface for groups of all kinds."""

    created: Callable[[str], None]
    """Called at a group's first record."""
    removed: Callable[[str], None]
    """Called at a group's last record."""
    to_replace: Callable[[str, str, int], list[OffsetsRecord]]
    """Takes the name of a kind, and the group's id and member epoch from a heartbeat. Returns the
    records to store before the group can be of that kind, or raises ApiError: a group of another
    kind may have its id."""
    classic: Callable[[str], ClassicGroup | None]
    """Finds a classic group; read only."""
    downgraded: Callable[[Downgraded, int], Effects]
    """Carries on with a group that has become a classic one, at a time in milliseconds."""


class KindPorts(NamedTuple):
    """Dependencies of each kind of group, besides its settings."""

    timers: Timers
    new_id: MemberIds
    topics: Topics
    registry: GroupRegistry
