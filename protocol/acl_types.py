"""Enumerations of access control lists, with their codes in requests (KIP-11, KIP-290).

`ANY` and `MATCH` stand in filters only; `UNKNOWN` stands for values of newer clients.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class ResourceType(IntEnum):
    """Type of the resource that an access control list protects."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Relation of a pattern's name to a resource's."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Operation on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    """Permission of an access control entry: allow or deny."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""

WILDCARD = "*"
"""As the name of a literal pattern: every resource of its type; as a host: every host."""

WILDCARD_PRINCIPAL = "User:*"
"""In an entry: every principal."""


class ResourcePattern(NamedTuple):
    """Pattern of the resources that an access control list protects (KIP-290)."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{self.resource_type.name}:{self.pattern_type.name}:{self.name}"


class AccessControlEntry(NamedTuple):
    """One permission: principal, host, operation, and allow or deny."""

    principal: str
    """As `User:alice`; `User:*` is every principal."""
    host: str
    """An address as Java writes it; `*` is every host."""
    operation: AclOperation
    permission_type: PermissionType
