"""Access control lists for tests, short to write."""

from __future__ import annotations

from protocol.acl_types import (
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

ALICE, BOB = "User:alice", "User:bob"
HOST = "/10.0.0.1"


def topic(name: str) -> ResourcePattern:
    return ResourcePattern(ResourceType.TOPIC, name)


def topics_with(prefix: str) -> ResourcePattern:
    return ResourcePattern(ResourceType.TOPIC, prefix, PatternType.PREFIXED)


def allow(operation: AclOperation, who: str = ALICE, host: str = WILDCARD) -> AccessControlEntry:
    return AccessControlEntry(who, host, operation, PermissionType.ALLOW)


def deny(operation: AclOperation, who: str = ALICE, host: str = WILDCARD) -> AccessControlEntry:
    return AccessControlEntry(who, host, operation, PermissionType.DENY)
