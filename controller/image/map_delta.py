"""Changes of a mapping, gathered until the next mapping is made: copy on write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

Key = TypeVar("Key")
Name = TypeVar("Name")
Value = TypeVar("Value")


class MapDelta(Generic[Key, Value]):
    """Entries set and removed on top of `base`, which is never changed.

    With `replaces`, the next mapping has only the entries set here, as after a snapshot, and those
    of `base` that were not set are removed.
    """

    __slots__ = ("_changes", "_replaces", "base")

    def __init__(self, base: Mapping[Key, Value], *, replaces: bool = False) -> None:
        self.base = base
        self._replaces = replaces
        self._changes: dict[Key, Value | None] = {}

    def get(self, key: Key) -> Value | None:
        """The value of a key as it is now, or None."""
        if key in self._changes:
            return self._changes[key]
        return None if self._replaces else self.base.get(key)

    def set(self, key: Key, value: Value) -> None:
        """Set one entry; it is a change even if the value is the same."""
        self._changes[key] = value

    def set_all(self, entries: Mapping[Key, Value]) -> None:
        """Set many entries at once."""
        self._changes.update(entries)

    def remove(self, key: Key) -> None:
        """Remove one entry, if it is there. One that `base` has not leaves no change behind."""
        if key in self.base:
            self._changes[key] = None
        else:
            self._changes.pop(key, None)

    @property
    def changes(self) -> Mapping[Key, Value | None]:
        """The new value of each key that was set, and None for each that was removed."""
        if not self._replaces:
            return self._changes
        return {**dict.fromkeys(self.base.keys() - self._changes.keys()), **self._changes}

    def apply(self) -> Mapping[Key, Value]:
        """The next mapping; `base` itself if nothing changed."""
        if not self._changes and not (self._replaces and self.base):
            return self.base
        # Without a step in Python for each entry: there may be 100,000, and one change.
        entries: dict[Key, Any] = dict(self._changes if self._replaces else self.base)
        if not self._replaces:
            entries.update(self._changes)
        for key in [key for key, value in self._changes.items() if value is None]:
            del entries[key]
        return entries


class NestedMapDelta(Generic[Key, Name, Value]):
    """Changes of a mapping of mappings, none of which is empty."""

    __slots__ = ("_inner", "_replaces", "base")

    def __init__(self, base: Mapping[Key, Mapping[Name, Value]], *, replaces: bool = False) -> None:
        self.base = base
        self._replaces = replaces
        self._inner: dict[Key, MapDelta[Name, Value]] = {}

    def of(self, key: Key) -> MapDelta[Name, Value]:
        """Changes of the inner mapping of a key; asking for it counts as a change of the key."""
        inner = self._inner.get(key)
        if inner is None:
            inner = MapDelta(self.base.get(key, {}), replaces=self._replaces)
            self._inner[key] = inner
        return inner

    def set_all(self, entries: Mapping[Key, Mapping[Name, Value]]) -> None:
        """Set many inner mappings at once."""
        for key, inner in entries.items():
            self.of(key).set_all(inner)

    def remove(self, key: Key) -> None:
        """Remove the whole inner mapping of a key."""
        self._inner.pop(key, None)
        if key in self.base:
            self._inner[key] = MapDelta(self.base[key], replaces=True)

    @property
    def changes(self) -> Mapping[Key, Mapping[Name, Value]]:
        """The new inner mapping of each key with a change; empty if nothing is left of it."""
        changed = {key: inner.apply() for key, inner in self._inner.items()}
        if self._replaces:
            changed.update({key: {} for key in self.base.keys() - changed.keys()})
        return changed

    def apply(self) -> Mapping[Key, Mapping[Name, Value]]:
        """The next mapping; `base` itself if nothing changed."""
        changes = self.changes
        if not changes:
            return self.base
        entries = {**self.base, **changes}
        return {key: inner for key, inner in entries.items() if inner}
