"""Decisions by a given set of access control lists."""

from __future__ import annotations

import random

import pytest

from broker.security.acls.acl_authorizer import (
    LONGEST_KEPT,
    AclAuthorizer,
    AuthorizerSettings,
)
from protocol.acl_types import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from tests.broker.security.acls.acl_entries import (
    ALICE,
    BOB,
    HOST,
    allow,
    deny,
    topic,
    topics_with,
)

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALL = AclOperation.ALL
OPEN = AuthorizerSettings(allows_without_acls=True)


def authorizer(
    acls: dict[ResourcePattern, list[AccessControlEntry]],
    settings: AuthorizerSettings | None = None,
) -> AclAuthorizer:
    made = AclAuthorizer(settings or AuthorizerSettings())
    for pattern, entries in acls.items():
        made.replace(pattern, entries)
    return made


def may(
    decider: AclAuthorizer, operation: AclOperation, name: str, who: str = ALICE, host: str = HOST
) -> bool:
    return decider.allows(who, host, operation, ResourceType.TOPIC, name)


def test_nothing_is_allowed_without_lists() -> None:
    assert not may(authorizer({}), READ, "orders")


def test_resources_without_acls_may_be_open_to_everyone() -> None:
    decider = authorizer({topic("orders"): [allow(READ, BOB)]}, OPEN)
    assert may(decider, READ, "payments")
    assert not may(decider, READ, "orders"), "a list covers it, and does not name her"


def test_a_list_on_all_resources_covers_each() -> None:
    decider = authorizer({topic(WILDCARD): [allow(READ, BOB)]}, OPEN)
    assert not may(decider, READ, "payments")


def test_an_entry_is_for_its_principal_its_resource_and_its_operation() -> None:
    decider = authorizer({topic("orders"): [allow(READ)]})
    assert may(decider, READ, "orders")
    assert not may(decider, READ, "orders", BOB)
    assert not may(decider, READ, "orders-1")
    assert not may(decider, WRITE, "orders")
    assert not decider.allows(ALICE, HOST, READ, ResourceType.GROUP, "orders")


def test_the_type_of_a_principal_counts() -> None:
    decider = authorizer({topic("orders"): [allow(READ, "Group:alice")]})
    assert not may(decider, READ, "orders")


def test_a_prefix_covers_what_begins_with_it() -> None:
    decider = authorizer({topics_with("orders-"): [allow(READ)], topics_with("pay"): [allow(READ)]})
    assert may(decider, READ, "orders-eu")
    assert may(decider, READ, "orders-")
    assert may(decider, READ, "payments")
    assert not may(decider, READ, "orders")


def test_a_prefixed_star_is_no_wildcard() -> None:
    decider = authorizer({topics_with(WILDCARD): [allow(READ)]})
    assert not may(decider, READ, "orders")
    assert may(decider, READ, "*orders")


@pytest.mark.parametrize("denied", [topic("orders"), topics_with("ord"), topic(WILDCARD)])
@pytest.mark.parametrize("allowed", [topic("orders"), topics_with("o"), topic(WILDCARD)])
def test_denying_wins_wherever_both_stand(
    allowed: ResourcePattern, denied: ResourcePattern
) -> None:
    decider = authorizer({})
    entries = {allowed: [allow(ALL)]}
    entries.setdefault(denied, []).append(deny(READ, WILDCARD_PRINCIPAL))
    for pattern, listed in entries.items():
        decider.replace(pattern, listed)
    assert not may(decider, READ, "orders")
    assert may(decider, WRITE, "orders")


@pytest.mark.parametrize("operation", list(AclOperation)[2:])
def test_some_operations_include_describing(operation: AclOperation) -> None:
    decider = authorizer({topic("orders"): [allow(operation)]})
    including = {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER, DESCRIBE, ALL}
    assert may(decider, DESCRIBE, "orders") == (operation in including)
    configs = {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS, ALL}
    assert may(decider, AclOperation.DESCRIBE_CONFIGS, "orders") == (operation in configs)


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_denying_what_includes_describing_denies_no_describing(operation: AclOperation) -> None:
    decider = authorizer({topic("orders"): [allow(DESCRIBE), deny(operation)]})
    assert may(decider, DESCRIBE, "orders")


def test_all_is_every_operation_denied_too() -> None:
    decider = authorizer({topic("a"): [allow(ALL)], topic("b"): [allow(READ), deny(ALL)]})
    assert all(may(decider, operation, "a") for operation in list(AclOperation)[3:])
    assert not any(may(decider, operation, "b") for operation in list(AclOperation)[3:])


def test_an_entry_is_for_its_host() -> None:
    decider = authorizer(
        {
            topic("a"): [allow(READ, host="10.0.0.1")],
            topic("b"): [allow(READ), deny(ALL, host="::1")],
        }
    )
    assert may(decider, READ, "a", host="/10.0.0.1")
    assert not may(decider, READ, "a", host="/10.0.0.2")
    assert may(decider, READ, "b", host="/0:0:0:0:0:0:0:1"), "no other writing of it is looked for"


def test_super_users_may_do_what_is_denied() -> None:
    settings = AuthorizerSettings(super_users=frozenset({ALICE}))
    decider = authorizer({topic(WILDCARD): [deny(ALL, WILDCARD_PRINCIPAL)]}, settings)
    assert may(decider, READ, "orders")
    assert decider.allows_any(ALICE, HOST, WRITE, ResourceType.TOPIC)
    assert not may(decider, READ, "orders", BOB)


def test_a_change_holds_from_the_next_decision_on() -> None:
    decider = authorizer({})
    assert not may(decider, READ, "orders")
    assert not decider.allows_any(ALICE, HOST, READ, ResourceType.TOPIC)
    decider.replace(topics_with("ord"), [allow(READ)])
    assert may(decider, READ, "orders")
    assert decider.allows_any(ALICE, HOST, READ, ResourceType.TOPIC)
    decider.replace(topics_with("ord"), [])
    assert not may(decider, READ, "orders")
    assert not decider.allows_any(ALICE, HOST, READ, ResourceType.TOPIC)
    assert len(decider.index) == 0


def test_kept_decisions_are_bounded() -> None:
    decider = authorizer(
        {topics_with("t"): [allow(READ)]}, AuthorizerSettings(max_cached_decisions=10)
    )
    for number in range(1000):
        assert may(decider, READ, f"t{number}")
        assert not decider.allows_any(f"User:{number}", HOST, READ, ResourceType.TOPIC)
        assert max(len(decider._decisions), len(decider._any_decisions)) <= 10


ANY_CASES = [
    ({topic("a"): [allow(WRITE)]}, True),
    ({topic("a"): [allow(WRITE), deny(WRITE, WILDCARD_PRINCIPAL)]}, False),
    ({topic("a"): [allow(WRITE), deny(WRITE, BOB)]}, True),
    ({topic("a"): [allow(WRITE), deny(READ)]}, True),
    ({topics_with("ab"): [allow(WRITE)], topics_with("a"): [deny(ALL)]}, False),
    ({topics_with("a"): [allow(WRITE)], topics_with("ab"): [deny(ALL)]}, True),
    ({topics_with("a"): [allow(WRITE)], topic("a"): [deny(ALL)]}, True),
    ({topic("ab"): [allow(WRITE)], topics_with("ab"): [deny(ALL)]}, False),
    ({topic(WILDCARD): [allow(ALL)], topics_with("a"): [deny(ALL)]}, True),
    ({topics_with("a"): [allow(ALL)], topic(WILDCARD): [deny(WRITE)]}, False),
    ({topic("a"): [allow(WRITE, host="10.9.9.9")]}, False),
    ({topic("a"): [allow(READ)]}, False),
    ({ResourcePattern(ResourceType.GROUP, "a"): [allow(WRITE)]}, False),
    ({}, False),
]


@pytest.mark.parametrize(("acls", "expected"), ANY_CASES)
@pytest.mark.parametrize("is_standard", [True, False])
def test_any_resource_of_a_type(
    acls: dict[ResourcePattern, list[AccessControlEntry]], expected: bool, is_standard: bool
) -> None:
    decider = authorizer(acls, AuthorizerSettings(is_standard=is_standard))
    assert decider.allows_any(ALICE, HOST, WRITE, ResourceType.TOPIC) == expected


def test_the_authorizers_differ_on_any_resource_where_everybody_is_allowed() -> None:
    acls = {topic(WILDCARD): [allow(READ, BOB)]}
    for is_standard in (True, False):
        settings = AuthorizerSettings(allows_without_acls=True, is_standard=is_standard)
        decider = authorizer(acls, settings)
        assert decider.allows_any(ALICE, HOST, WRITE, ResourceType.TOPIC) == (not is_standard)
        assert authorizer({}, settings).allows_any(ALICE, HOST, WRITE, ResourceType.TOPIC)


def by_the_book(
    acls: dict[ResourcePattern, list[AccessControlEntry]],
    asked: tuple[str, str, AclOperation, ResourceType, str],
) -> bool:
    """The rules once more, without an index: over all lists, one by one."""
    principal, host, operation, resource_type, name = asked
    matching = [
        entry
        for pattern, entries in acls.items()
        if pattern.resource_type == resource_type
        and (
            pattern.name in (name, WILDCARD)
            if pattern.pattern_type == PatternType.LITERAL
            else name.startswith(pattern.name)
        )
        for entry in entries
        if entry.principal in (principal, WILDCARD_PRINCIPAL) and entry.host in (host[1:], WILDCARD)
    ]
    denied = [entry for entry in matching if entry.permission_type == PermissionType.DENY]
    if any(entry.operation in (operation, ALL) for entry in denied):
        return False
    implying = {
        DESCRIBE: {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER},
        AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
    }.get(operation, set())
    return any(
        entry.operation in {operation, ALL} | implying
        for entry in matching
        if entry.permission_type == PermissionType.ALLOW
    )


@pytest.mark.parametrize("seed", range(20))
def test_drawn_lists_are_decided_as_by_looking_at_each(seed: int) -> None:
    chance = random.Random(seed)
    names = ["*", "a", "ab", "abc", "b", "ba", "*a"]
    people, hosts = [ALICE, BOB, WILDCARD_PRINCIPAL], ["10.0.0.1", "10.0.0.2", WILDCARD]
    types, operations = [ResourceType.TOPIC, ResourceType.GROUP], list(AclOperation)[2:]
    acls: dict[ResourcePattern, list[AccessControlEntry]] = {}
    decider = AclAuthorizer(AuthorizerSettings())
    for _ in range(200):
        kind = chance.choice([PatternType.LITERAL, PatternType.PREFIXED])
        pattern = ResourcePattern(chance.choice(types), chance.choice(names), kind)
        permission = chance.choice([PermissionType.ALLOW, PermissionType.DENY])
        entries = [
            AccessControlEntry(
                chance.choice(people), chance.choice(hosts), chance.choice(operations), permission
            )
            for _ in range(chance.randrange(3))
        ]
        acls[pattern] = entries
        decider.replace(pattern, entries)
        asked = (
            chance.choice(people[:2]),
            f"/{chance.choice(hosts[:2])}",
            chance.choice(operations[1:]),
            chance.choice(types),
            chance.choice(names),
        )
        assert decider.allows(*asked) == by_the_book(acls, asked), asked


def test_decisions_about_names_that_no_topic_has_are_not_kept() -> None:
    decider = authorizer({topic("*"): [allow(READ)]})
    assert may(decider, READ, "x" * LONGEST_KEPT)
    assert may(decider, READ, "x" * (LONGEST_KEPT + 1))
    assert [len(name) for *_, name in decider._decisions] == [LONGEST_KEPT]


def test_range_of_hosts_is_known_to_standard_authorizer_alone() -> None:
    acls = {topic("orders"): [allow(READ, host="10.0.0.0/24"), deny(WRITE, host="10.0.0.0/24")]}
    standard = authorizer(acls)

    assert may(standard, READ, "orders", host="/10.0.0.9")
    assert not may(standard, READ, "orders", host="/10.0.1.9")
    assert standard.allows_any(ALICE, "/10.0.0.9", READ, ResourceType.TOPIC)
    assert not standard.allows_any(ALICE, "/10.0.1.9", READ, ResourceType.TOPIC)
    assert not may(authorizer(acls, AuthorizerSettings(is_standard=False)), READ, "orders")


def test_range_that_denies_wins_over_an_address_that_allows() -> None:
    acls = {topic("orders"): [allow(READ, host="10.0.0.1"), deny(READ, host="10.0.0.0/8")]}

    assert not may(authorizer(acls), READ, "orders")
