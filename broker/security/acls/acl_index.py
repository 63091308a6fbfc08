"""Access control lists, found by the resource that they cover and by the principal they name.

A resource is covered by the literal pattern of its name, by the literal pattern `*`, and by the
prefixed patterns that its name begins with. Those are looked up as well, one for each length that
a prefix has: with prefixes `a`, `orders-` and `orders-eu-`, the topic `orders-eu-1` costs lookups
of lengths 1, 7 and 10, however many prefixes there are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from protocol.acl_types import WILDCARD, PatternType, ResourcePattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from protocol.acl_types import AccessControlEntry, ResourceType

    Entries = tuple[AccessControlEntry, ...]

_NOTHING: Mapping[ResourcePattern, Entries] = {}


class AclIndex:
    """All access control lists of a cluster."""

    __slots__ = ("_by_pattern", "_by_principal", "_entries", "_prefix_lengths")

    def __init__(self) -> None:
        """Without any."""
        self._entries: dict[ResourcePattern, Entries] = {}
        self._by_pattern: dict[ResourcePattern, dict[str, Entries]] = {}
        """The same by pattern, then by principal."""
        self._by_principal: defaultdict[
            tuple[ResourceType, str], dict[ResourcePattern, Entries]
        ] = defaultdict(dict)
        self._prefix_lengths: defaultdict[ResourceType, Counter[int]] = defaultdict(Counter)
        """Number of prefixed patterns of each length."""

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def items(self) -> Iterable[tuple[ResourcePattern, Entries]]:
        """All lists, by their patterns."""
        return self._entries.items()

    def replace(self, pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> None:
        """Give a pattern exactly these entries; without any, it is forgotten."""
        self._forget(pattern)
        listed = tuple(entries)
        if not listed:
            return
        grouped: defaultdict[str, list[AccessControlEntry]] = defaultdict(list)
        for entry in listed:
            grouped[entry.principal].append(entry)
        by_principal = {principal: tuple(some) for principal, some in grouped.items()}
        self._entries[pattern] = listed
        self._by_pattern[pattern] = by_principal
        for principal, some in by_principal.items():
            self._by_principal[pattern.resource_type, principal][pattern] = some
        if pattern.pattern_type is PatternType.PREFIXED:
            self._prefix_lengths[pattern.resource_type][len(pattern.name)] += 1

    def covering(self, resource_type: ResourceType, name: str) -> Iterator[Mapping[str, Entries]]:
        """The lists that cover a resource, each by principal."""
        literal = ResourcePattern(resource_type, name)
        patterns = [literal]
        if name != WILDCARD:
            patterns.append(ResourcePattern(resource_type, WILDCARD))
        patterns += (
            ResourcePattern(resource_type, name[:length], PatternType.PREFIXED)
            for length in self._prefix_lengths.get(resource_type, ())
            if length <= len(name)
        )
        for pattern in patterns:
            entries = self._by_pattern.get(pattern)
            if entries is not None:
                yield entries

    def naming(
        self, resource_type: ResourceType, principal: str
    ) -> Mapping[ResourcePattern, Entries]:
        """The entries for a principal, on resources of a type, by pattern."""
        return self._by_principal.get((resource_type, principal), _NOTHING)

    def _forget(self, pattern: ResourcePattern) -> None:
        if self._entries.pop(pattern, None) is None:
            return
        for principal in self._by_pattern.pop(pattern):
            named = self._by_principal[pattern.resource_type, principal]
            del named[pattern]
            if not named:
                del self._by_principal[pattern.resource_type, principal]
        if pattern.pattern_type is PatternType.PREFIXED:
            lengths = self._prefix_lengths[pattern.resource_type]
            lengths[len(pattern.name)] -= 1
            if not lengths[len(pattern.name)]:
                del lengths[len(pattern.name)]
