"""Filters over access control lists, with the matching of Apache Kafka's (`AclBindingFilter`).

`MATCH` as the type of a pattern selects every pattern that covers a resource of the filter's name;
`ANY` selects patterns of that very name, of any type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.acl_types import (
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)

if TYPE_CHECKING:
    from protocol.acl_types import AccessControlEntry, ResourcePattern


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Criteria for entries; None and `ANY` match everything."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: PermissionType = PermissionType.ANY

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        """Return whether it matches lists of this pattern."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type is PatternType.MATCH:
            return self.name is None or _covers(pattern, self.name)
        if self.pattern_type not in (PatternType.ANY, pattern.pattern_type):
            return False
        return self.name is None or self.name == pattern.name

    def matches_entry(self, entry: AccessControlEntry) -> bool:
        """Return whether it matches such an entry."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (PermissionType.ANY, entry.permission_type)
        )


def _covers(pattern: ResourcePattern, name: str) -> bool:
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in (name, WILDCARD)
