"""Access control lists matched by a filter."""

from __future__ import annotations

import pytest

from broker.security.acls.acl_filter import AclFilter
from protocol.acl_types import (
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from tests.broker.security.acls.acl_entries import ALICE, BOB, allow, topic, topics_with

PATTERNS = {
    "literal": topic("orders"),
    "all": topic(WILDCARD),
    "prefix": topics_with("ord"),
    "same": topics_with("orders"),
    "group": ResourcePattern(ResourceType.GROUP, "orders"),
}


@pytest.mark.parametrize(
    ("pattern_type", "name", "matched"),
    [
        (PatternType.ANY, None, "literal all prefix same"),
        (PatternType.MATCH, None, "literal all prefix same"),
        (PatternType.LITERAL, None, "literal all"),
        (PatternType.PREFIXED, None, "prefix same"),
        (PatternType.ANY, "orders", "literal same"),
        (PatternType.MATCH, "orders", "literal all prefix same"),
        (PatternType.MATCH, "ordain", "all prefix"),
        (PatternType.MATCH, "or", "all"),
        (PatternType.LITERAL, "orders", "literal"),
        (PatternType.LITERAL, WILDCARD, "all"),
        (PatternType.PREFIXED, "orders", "same"),
        (PatternType.UNKNOWN, None, ""),
    ],
)
def test_patterns_match_by_the_type_of_the_filter(
    pattern_type: PatternType, name: str | None, matched: str
) -> None:
    wanted = AclFilter(ResourceType.TOPIC, name, pattern_type)
    assert [key for key, one in PATTERNS.items() if wanted.matches_pattern(one)] == matched.split()


def test_a_filter_of_any_type_is_about_all_of_them() -> None:
    wanted = AclFilter(ResourceType.ANY, "orders", PatternType.ANY)
    matched = [key for key, one in PATTERNS.items() if wanted.matches_pattern(one)]
    assert matched == ["literal", "same", "group"]


@pytest.mark.parametrize(
    ("wanted", "is_matched"),
    [
        (AclFilter(), True),
        (AclFilter(principal=ALICE), True),
        (AclFilter(principal=BOB), False),
        (AclFilter(principal="User:*"), False),
        (AclFilter(host=WILDCARD), False),
        (AclFilter(host="10.0.0.1"), True),
        (AclFilter(operation=AclOperation.READ), True),
        (AclFilter(operation=AclOperation.ALL), False),
        (AclFilter(operation=AclOperation.UNKNOWN), False),
        (AclFilter(permission_type=PermissionType.ALLOW), True),
        (AclFilter(permission_type=PermissionType.DENY), False),
    ],
)
def test_unset_filter_fields_match_any_entry(wanted: AclFilter, is_matched: bool) -> None:
    entry = allow(AclOperation.READ, ALICE, "10.0.0.1")
    assert wanted.matches_entry(entry) == is_matched
