"""An authorizer that allows what a test says, and nothing else."""

from __future__ import annotations

from broker.security.acls.acl_authorizer import AclAuthorizer, AuthorizerSettings
from protocol.acl_types import (
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

PRINCIPAL = "User:A"
"""The client of brokers without sockets."""

Right = tuple[ResourceType, str, AclOperation]
"""Resource type, resource name and the operation allowed on it."""


def allowing(*rights: Right, principal: str = PRINCIPAL) -> AclAuthorizer:
    """Return an authorizer with access control lists that give `principal` these rights."""
    authorizer = AclAuthorizer(AuthorizerSettings())
    entries: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for kind, name, operation in rights:
        entry = AccessControlEntry(principal, WILDCARD, operation, PermissionType.ALLOW)
        entries.setdefault(ResourcePattern(kind, name), []).append(entry)
    for pattern, of_it in entries.items():
        authorizer.replace(pattern, of_it)
    return authorizer
