"""The groups of one kind in a shard, by id, and the replay of their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from coordinator.records import KeyOfKind
    from protocol.schema import Coded

GroupT = TypeVar("GroupT")


class Replay(NamedTuple):
    """How records of a kind make its groups."""

    epoch_key: type[KeyOfKind]
    """The record without which there is no group: its tombstone removes the group."""
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
        """`created` and `removed` hear of a group's first record, and of its last."""
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
