"""Access control lists in the metadata tree: paths and bytes, as Apache Kafka 3.9 writes them.

/kafka-acl/Topic/orders                     lists of literal patterns, by type and name
/kafka-acl-extended/prefixed/Topic/orders-  lists of prefixed patterns
/kafka-acl-changes/acl_changes_0000000000   TOPIC:orders       the first of them has changed
/kafka-acl-extended-changes/acl_changes_…   {"version":1,…}    the second
"""

from __future__ import annotations

import json
import re
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from controller.znodes import MalformedZnodeError
from protocol.acl_types import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

LITERAL_ACLS = "/kafka-acl"
EXTENDED_ACLS = "/kafka-acl-extended"
PREFIXED_ACLS = f"{EXTENDED_ACLS}/prefixed"
LITERAL_CHANGES = "/kafka-acl-changes"
EXTENDED_CHANGES = "/kafka-acl-extended-changes"
CHANGES = {PatternType.LITERAL: LITERAL_CHANGES, PatternType.PREFIXED: EXTENDED_CHANGES}
CHANGE_PREFIX = "acl_changes_"

TREES = {PatternType.LITERAL: LITERAL_ACLS, PatternType.PREFIXED: PREFIXED_ACLS}
"""Root paths of the lists, by the type of their patterns."""

_VERSION = 1
_NO_ZNODE = re.compile("[/\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")
"""Characters that ZooKeeper takes in no name of a node; beyond U+FFFF it sees two surrogates."""

E = TypeVar("E", bound=IntEnum)


_IN_PASCAL_CASE: dict[type[IntEnum], dict[int, str]] = {
    words: {int(one): one.name.title().replace("_", "") for one in words}
    for words in (ResourceType, AclOperation, PermissionType)
}


def in_pascal_case(word: ResourceType | AclOperation | PermissionType) -> str:
    """A word as Kafka stores it: `TransactionalId` for TRANSACTIONAL_ID."""
    return _IN_PASCAL_CASE[type(word)][word]


PROTECTED = {in_pascal_case(one): one for one in ResourceType if one > ResourceType.ANY}
"""The types of resources that lists can protect, by the names of their nodes."""

ACL_PATHS = (
    *(LITERAL_ACLS, *(f"{LITERAL_ACLS}/{name}" for name in PROTECTED)),
    *(EXTENDED_ACLS, PREFIXED_ACLS, *(f"{PREFIXED_ACLS}/{name}" for name in PROTECTED)),
    *(LITERAL_CHANGES, EXTENDED_CHANGES),
)
"""Made with no data by the first broker that has an authorizer, parents before children."""


def can_be_stored(name: str) -> bool:
    """Return whether a resource of that name can have a node."""
    return name not in ("", ".", "..") and _NO_ZNODE.search(name) is None


def acl_path(pattern: ResourcePattern) -> str:
    """Path of a pattern's list."""
    tree = TREES[pattern.pattern_type]
    return f"{tree}/{in_pascal_case(pattern.resource_type)}/{pattern.name}"


def encode_acl(entries: Iterable[AccessControlEntry]) -> bytes:
    """Bytes of a list, version 1."""
    listed = [
        {
            "principal": entry.principal,
            "permissionType": in_pascal_case(entry.permission_type),
            "host": entry.host,
            "operation": in_pascal_case(entry.operation),
        }
        for entry in entries
    ]
    return _encode({"acls": listed, "version": _VERSION})


def decode_acl(path: str, data: bytes | None) -> tuple[AccessControlEntry, ...]:
    """Read a list; an empty node has no entries. Raises MalformedZnodeError.

    Words that this version does not know become UNKNOWN, which matches no request.
    """
    if not data:
        return ()
    try:
        content = json.loads(data)
        if content["version"] != _VERSION:
            raise _malformed(path, data)
        return tuple(dict.fromkeys(_entry(one) for one in content["acls"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _malformed(path, data) from error


def _entry(content: dict[str, str]) -> AccessControlEntry:
    principal = content["principal"]
    if ":" not in principal:
        raise ValueError(principal)
    return AccessControlEntry(
        principal,
        str(content["host"]),
        _word(AclOperation, content["operation"]),
        _word(PermissionType, content["permissionType"]),
    )


def _word(words: type[E], text: str) -> E:
    wanted = text.upper()
    known = (one for one in words if one.name.replace("_", "") == wanted)
    return next(known, words(0))


def encode_acl_change(pattern: ResourcePattern) -> bytes:
    """Bytes of a notification: text for a literal pattern, JSON for any other."""
    if pattern.pattern_type is PatternType.LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    return _encode(
        {
            "version": _VERSION,
            "resourceType": pattern.resource_type.name,
            "name": pattern.name,
            "patternType": pattern.pattern_type.name,
        }
    )


def decode_acl_change(path: str, data: bytes | None) -> ResourcePattern:
    """The pattern that a notification is about. Raises MalformedZnodeError."""
    try:
        pattern = _changed(path, data or b"")
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(path, data) from error
    if pattern.pattern_type not in TREES or not can_be_stored(pattern.name):
        raise _malformed(path, data)
    return pattern


def _changed(path: str, data: bytes) -> ResourcePattern:
    if path.startswith(f"{LITERAL_CHANGES}/"):
        resource_type, _, name = data.decode().partition(":")
        return ResourcePattern(ResourceType[resource_type.upper()], name)
    content = json.loads(data)
    return ResourcePattern(
        ResourceType[content["resourceType"]],
        content["name"],
        PatternType[content["patternType"]],
    )


def _encode(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def _malformed(path: str, data: bytes | None) -> MalformedZnodeError:
    return MalformedZnodeError(f"{path} holds {data!r}, which cannot be read")
