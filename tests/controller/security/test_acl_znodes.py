"""Access control lists as Apache Kafka writes them, byte for byte."""

from __future__ import annotations

import pytest

from controller.security.acl_znodes import (
    ACL_PATHS,
    acl_path,
    can_be_stored,
    decode_acl,
    decode_acl_change,
    encode_acl,
    encode_acl_change,
)
from controller.znodes import MalformedZnodeError
from protocol.acl_types import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

ALICE_READS = AccessControlEntry("User:alice", "*", AclOperation.READ, PermissionType.ALLOW)
PREFIX = ResourcePattern(ResourceType.GROUP, "pre", PatternType.PREFIXED)


def test_a_list_has_the_bytes_of_apache_kafka() -> None:
    assert encode_acl([ALICE_READS]) == (
        b'{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*",'
        b'"operation":"Read"}],"version":1}'
    )


def test_notifications_have_the_bytes_of_apache_kafka() -> None:
    literal = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "a:b")
    assert encode_acl_change(literal) == b"TRANSACTIONAL_ID:a:b"
    assert encode_acl_change(PREFIX) == (
        b'{"version":1,"resourceType":"GROUP","name":"pre","patternType":"PREFIXED"}'
    )


@pytest.mark.parametrize("operation", list(AclOperation)[2:])
@pytest.mark.parametrize("permission", [PermissionType.ALLOW, PermissionType.DENY])
def test_acl_entries_are_decoded_as_encoded(
    operation: AclOperation, permission: PermissionType
) -> None:
    entries = (ALICE_READS, AccessControlEntry('User:ü"\\', "::1", operation, permission))
    assert decode_acl("/a", encode_acl(entries)) == entries


@pytest.mark.parametrize("resource_type", list(ResourceType)[2:])
@pytest.mark.parametrize("pattern_type", [PatternType.LITERAL, PatternType.PREFIXED])
def test_acl_change_notifications_are_decoded_as_encoded(
    resource_type: ResourceType, pattern_type: PatternType
) -> None:
    pattern = ResourcePattern(resource_type, "a:b", pattern_type)
    is_literal = pattern_type == PatternType.LITERAL
    parent = "/kafka-acl-changes" if is_literal else "/kafka-acl-extended-changes"
    assert decode_acl_change(f"{parent}/acl_changes_1", encode_acl_change(pattern)) == pattern
    assert acl_path(pattern).rpartition("/")[0] in ACL_PATHS
    assert parent in ACL_PATHS


def test_an_unknown_operation_is_decoded_as_unknown() -> None:
    data = encode_acl([ALICE_READS]).replace(b'"Read"', b'"FlyAway"')
    assert decode_acl("/a", data)[0].operation is AclOperation.UNKNOWN


@pytest.mark.parametrize("data", [None, b""])
def test_an_empty_node_has_no_entries(data: bytes | None) -> None:
    assert decode_acl("/a", data) == ()


@pytest.mark.parametrize(
    "data",
    [
        *(b"{", b"[]", b'{"version":1}', b'{"version":2,"acls":[]}', b'{"version":1,"acls":[1]}'),
        encode_acl([ALICE_READS._replace(principal="alice")]),
        b"\xff",
    ],
)
def test_a_malformed_acl_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedZnodeError, match="/kafka-acl/Topic/a"):
        decode_acl("/kafka-acl/Topic/a", data)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        *(("/kafka-acl-changes/a", data) for data in (b"TOPIC", b"FISH:a", b"TOPIC:a/b", b"\xff")),
        ("/kafka-acl-extended-changes/a", b"TOPIC:a"),
        ("/kafka-acl-extended-changes/a", b'{"resourceType":"TOPIC","name":"a"}'),
        (
            "/kafka-acl-extended-changes/a",
            b'{"resourceType":"TOPIC","name":"a","patternType":"MATCH"}',
        ),
    ],
)
def test_a_malformed_acl_notification_is_refused(path: str, data: bytes) -> None:
    with pytest.raises(MalformedZnodeError):
        decode_acl_change(path, data)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0", "a\n", "\ue000", "\uffff", "😀"])
def test_names_that_no_znode_can_have(name: str) -> None:
    assert not can_be_stored(name)


@pytest.mark.parametrize("name", ["*", "a", "...", "a b", "größe", "日本"])
def test_names_that_a_znode_can_have(name: str) -> None:
    assert can_be_stored(name)
