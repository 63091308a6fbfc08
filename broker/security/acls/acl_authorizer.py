"""Authorizer by access control lists, with the rules of both of Apache Kafka's authorizers.

Of the lists that cover a resource, the entries apply that name the principal or everybody, from the
client's host or any, for the operation or for all. A DENY entry wins; else an ALLOW entry is
needed, where READ, WRITE, DELETE and ALTER include DESCRIBE, and ALTER_CONFIGS includes
DESCRIBE_CONFIGS. A resource without a list is open to all or to none
(`allow.everyone.if.no.acl.found`). Super users may do everything.

    alice: ALLOW READ  on topics `orders-*` (prefixed)      she reads and describes orders-1
    *:     DENY  READ  on topic  `orders-secret` (literal)  nobody reads it, she still describes it

A decision is kept until any list changes, so that a produce request pays for one lookup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.security.acls.acl_index import AclIndex
from broker.security.acls.any_resource import Patterns, is_any_allowed
from broker.security.acls.host_ranges import is_range, is_within
from protocol.acl_types import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PermissionType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.acl_types import AccessControlEntry, ResourcePattern, ResourceType

DESCRIBING = frozenset(
    {
        *(AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE),
        *(AclOperation.DELETE, AclOperation.ALTER, AclOperation.ALL),
    }
)
DESCRIBING_CONFIGS = frozenset(
    {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS, AclOperation.ALL}
)

_ALLOWING = {operation: frozenset({operation, AclOperation.ALL}) for operation in AclOperation} | {
    AclOperation.DESCRIBE: DESCRIBING,
    AclOperation.DESCRIBE_CONFIGS: DESCRIBING_CONFIGS,
}
"""The operations of entries that allow an operation; to deny it, they must name it, or ALL."""

LONGEST_KEPT = 250
"""Characters of a name: a decision about a longer one is made each time, as no topic has one. A
stranger may ask about 50,000 names of 32 KB."""

_ANY_NAME = "hardcode"
"""Resource that StandardAuthorizer checks first for an operation on any of a type."""


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """Authorization settings of a configuration, besides the lists."""

    super_users: frozenset[str] = frozenset()
    allows_without_acls: bool = False
    """True if a resource without a list is open to everybody."""
    is_standard: bool = True
    """True to decide on any resource of a type as StandardAuthorizer, false as AclAuthorizer."""
    max_cached_decisions: int = 50_000


class AclAuthorizer:
    """The authorizer of a broker; asked and changed on its event loop."""

    __slots__ = ("_any_decisions", "_decisions", "_settings", "index")

    def __init__(self, settings: AuthorizerSettings) -> None:
        """Without any lists yet."""
        self.index = AclIndex()
        self._settings = settings
        self._decisions: dict[tuple[str, str, AclOperation, ResourceType, str], bool] = {}
        self._any_decisions: dict[tuple[str, str, AclOperation, ResourceType], bool] = {}

    def replace(self, pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> None:
        """Give a pattern exactly these entries, from the next decision on."""
        self.index.replace(pattern, entries)
        self._decisions.clear()
        self._any_decisions.clear()

    def allows(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Return whether a principal may do this to the resource of that name."""
        asked = (principal, host, operation, resource_type, name)
        decision = self._decisions.get(asked)
        if decision is None:
            if len(name) > LONGEST_KEPT:
                return self._decide(*asked)
            if len(self._decisions) >= self._settings.max_cached_decisions:
                self._decisions.clear()
            decision = self._decisions[asked] = self._decide(*asked)
        return decision

    would_allow = allows

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether there may be a resource of the type to which it may do this (KIP-679)."""
        asked = (principal, host, operation, resource_type)
        decision = self._any_decisions.get(asked)
        if decision is None:
            if len(self._any_decisions) >= self._settings.max_cached_decisions:
                self._any_decisions.clear()
            decision = self._any_decisions[asked] = self._decide_any(*asked)
        return decision

    def _decide(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        if principal in self._settings.super_users:
            return True
        shown = host.removeprefix("/")
        is_covered = is_allowed = False
        for entries in self.index.covering(resource_type, name):
            is_covered = True
            for who in {principal, WILDCARD_PRINCIPAL}:
                for entry in entries.get(who, ()):
                    if not self._is_of_host(entry.host, shown):
                        continue
                    if entry.permission_type is PermissionType.ALLOW:
                        is_allowed = is_allowed or entry.operation in _ALLOWING[operation]
                    elif entry.operation in (operation, AclOperation.ALL):
                        return False
        return is_allowed if is_covered else self._settings.allows_without_acls

    def _decide_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        settings = self._settings
        if principal in settings.super_users:
            return True
        if settings.is_standard and self._decide(
            principal, host, operation, resource_type, _ANY_NAME
        ):
            return True
        allowed, denied = Patterns(), Patterns()
        shown = host.removeprefix("/")
        for who in {principal, WILDCARD_PRINCIPAL}:
            for pattern, entries in self.index.naming(resource_type, who).items():
                for entry in entries:
                    is_meant = entry.operation in (operation, AclOperation.ALL)
                    if is_meant and self._is_of_host(entry.host, shown):
                        is_allow = entry.permission_type is PermissionType.ALLOW
                        (allowed if is_allow else denied).add(pattern)
        is_open = settings.allows_without_acls and not settings.is_standard
        return is_any_allowed(allowed, denied, is_open=is_open)

    def _is_of_host(self, wanted: str, host: str) -> bool:
        """Return whether an entry applies to a client's host: by address, wildcard or range."""
        if wanted in (host, WILDCARD):
            return True
        return self._settings.is_standard and is_range(wanted) and is_within(host, wanted)
