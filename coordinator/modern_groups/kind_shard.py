"""The groups of one kind in one partition of `__consumer_offsets`: part of `coordinator.shard`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from coordinator.effects import Effects
from coordinator.modern_groups.group_table import GroupTable, Replay
from coordinator.modern_groups.listing import ListedGroup, listed
from coordinator.modern_groups.watches import WatchedGroup, WatchedMember
from coordinator.topics import TopicHashes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from coordinator.modern_groups.group_kind import KindPorts
    from coordinator.modern_groups.watches import Watches
    from coordinator.ports import TimerKey, TimerKind
    from coordinator.records import KeyOfKind
    from protocol.messages.groups import ListGroupsResponse
    from protocol.schema import Coded

logger = logging.getLogger(__name__)

MemberT = TypeVar("MemberT", bound=WatchedMember)


class KindGroup(WatchedGroup[MemberT], ListedGroup, Protocol):
    """A group as both its sessions and ListGroups need it."""


GroupT = TypeVar("GroupT", bound=KindGroup[Any])


class KindShard(Generic[GroupT, MemberT]):
    """Implementation of `GroupKind` common to all kinds; subclasses add the rest."""

    name: ClassVar[str]
    """The type and the protocol type of its groups, as ListGroups shows them."""
    key_classes: ClassVar[tuple[type[KeyOfKind], ...]]
    timers: ClassVar[tuple[TimerKind, ...]]

    def __init__(
        self,
        make: Callable[[str], GroupT],
        replay: Replay,
        watches: Watches[Any],
        ports: KindPorts,
    ) -> None:
        """`make` makes a group by its id."""
        self._registry = ports.registry
        self._topics = ports.topics
        self._watches = watches
        self._hashes = TopicHashes(ports.topics)
        self.groups = GroupTable(make, replay, self._registry.created, self._on_removed)

    def on_loaded(self) -> None:
        """The log has been replayed: members' sessions begin."""
        for group in self.groups:
            if group.members:
                self._watches.loaded(group)

    def on_unloaded(self) -> None:
        """The shard goes to another broker, or this one stops."""
        self._watches.clear()
        self.groups.clear()

    def expire(self, key: TimerKey, now_ms: int) -> Effects:
        """A group's timer went off: members that were silent or slow are removed."""
        effects = Effects()
        group = self.groups.find(key.group_id)
        if group is None:
            self._watches.forget(key.group_id)
            return effects
        late = self._late(group)
        for member in late:
            logger.info(
                "%s group %s: member %s removed, as its session or rebalance timeout is over",
                self.name,
                group.group_id,
                member.member_id,
            )
        if late:
            self._remove(group, late, effects, now_ms)
        return effects

    @property
    def group_ids(self) -> Collection[str]:
        """All groups of this kind."""
        return [group.group_id for group in self.groups]

    def __contains__(self, group_id: object) -> bool:
        return group_id in self.groups

    def replay(self, key: KeyOfKind, value: Coded | None) -> None:
        """Apply one record."""
        assert isinstance(key, self.key_classes), "the key of another kind of group"
        self.groups.replay(key, value)

    def has_members(self, group_id: str) -> bool:
        """Return whether it has members, so that it can be neither deleted nor replaced."""
        return bool(self._group(group_id).members)

    def listed(
        self, states: Collection[str], types: Collection[str]
    ) -> Iterator[ListGroupsResponse.Group]:
        """Groups in one of `states` and `types`; those there are at the first step."""
        groups = ((group, self.name) for group in list(self.groups))
        return listed(groups, self.name, states, types)

    def require(self, group_id: str) -> GroupT:
        """A group. Raises GROUP_ID_NOT_FOUND."""
        group = self.groups.find(group_id)
        if group is None:
            self._registry.to_replace(self.name, group_id, -1)
        assert group is not None, "to_replace raises for who does not join"
        return group

    def prepare_hash(self, topic: str) -> None:
        """Compute the hash of a topic that a heartbeat is about to name."""
        self._hashes.prepare(topic)

    def _group(self, group_id: str) -> GroupT:
        group = self.groups.find(group_id)
        assert group is not None, "asked of another kind of group"
        return group

    def _late(self, group: GroupT) -> list[MemberT]:
        """Members that are to be removed, since their deadlines have passed."""
        return self._watches.expired(group)

    def _remove(
        self, group: GroupT, members: Sequence[MemberT], effects: Effects, now_ms: int
    ) -> None:
        raise NotImplementedError

    def _on_removed(self, group: GroupT) -> None:
        self._watches.forget(group.group_id)
        self._registry.removed(group.group_id)
