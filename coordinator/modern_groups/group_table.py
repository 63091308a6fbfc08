"""The groups of one kind in a shard, by id, and the replay of their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from coordinator.modern_groups.epochs import FIRST_EPOCH
from coordinator.modern_groups.watches import WatchedGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from coordinator.modern_groups.group import ModernGroup
    from coordinator.records import KeyOfKind
    from protocol.schema import Coded

GroupT = TypeVar("GroupT", bound=WatchedGroup[Any])


class EpochValue(Protocol):
    """The record of a group's epoch, of any kind."""

    epoch: int
    metadata_hash: int


class TargetEpochValue(Protocol):
    """The record of the epoch that the target assignment is of, of any kind."""

    assignment_epoch: int
    assignment_timestamp: int


class Replay(NamedTuple):
    """Replay of the records of one kind of group."""

    epoch_key: type[KeyOfKind]
    """Record without which there is no group: its tombstone removes the group."""
    by_key: Mapping[type[Any], Callable[..., None]]
    """Each is called with the group, the key and the value, None for a tombstone."""


class GroupTable(Generic[GroupT]):
    """Groups by id; changed by replay alone."""

    def __init__(
        self,
        make: Callable[[str], GroupT],
        replay: Replay,
        created: Callable[[str], None],
        removed: Callable[[GroupT], None],
    ) -> None:
        """`created` is called at a group's first record, `removed` at its last."""
        self._groups: dict[str, GroupT] = {}
        self._make = make
        self._replay = replay
        self._created = created
        self._removed = removed

    def __iter__(self) -> Iterator[GroupT]:
        return iter(self._groups.values())

    def __contains__(self, group_id: object) -> bool:
        return group_id in self._groups

    def find(self, group_id: str) -> GroupT | None:
        """One group; read only."""
        return self._groups.get(group_id)

    def holds(self, group: GroupT) -> bool:
        """Return whether it is still here: it may have been replaced by another of the same id."""
        return self._groups.get(group.group_id) is group

    def clear(self) -> None:
        """Forget all groups: the shard goes elsewhere."""
        self._groups.clear()

    def replay(self, key: KeyOfKind, value: Coded | None) -> None:
        """Apply one record of this kind."""
        group_id = key.group_id
        group = self._groups.get(group_id)
        if group is None:
            if value is None:
                return
            group = self._groups[group_id] = self._make(group_id)
            self._created(group_id)
        if value is None and isinstance(key, self._replay.epoch_key):
            del self._groups[group_id]
            self._removed(group)
            return
        self._replay.by_key[type(key)](group, key, value)


def replay_epoch(group: ModernGroup[Any, Any], _: KeyOfKind, value: EpochValue | None) -> None:
    """The group's epoch."""
    assert value is not None, "GroupTable removes the group"
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def replay_target_epoch(
    group: ModernGroup[Any, Any], _: KeyOfKind, value: TargetEpochValue | None
) -> None:
    """The epoch that the target assignment is of."""
    group.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp
