"""Users' requests and ACLs, drawn from a seed: the same for every broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.acl_types import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from protocol.api_keys import ApiKey
from tests.interop.security.contestants import USERS

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from tests.interop.security.contestants import Entry

KEPT = ("orders", "orders-eu", "orders-us", "payments", "secret")
"""Topics that there always are."""
PASSING = ("drawn-1", "drawn-2")
"""Topics that may come and go."""
NEVER = "missing"
ILLEGAL = "no name"
"""A name that no topic can have."""
GROUPS = ("readers", "readers-eu", "audit")
TRANSACTIONS = ("transfers", "transfers-eu")

COMING_AND_GOING = {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS}
MAY_CREATE = COMING_AND_GOING | {ApiKey.METADATA}
REMOVES_GROUPS = {ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE}
CHANGES_ACLS = {ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS}

OPERATIONS = {
    ResourceType.TOPIC: (
        *("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
        *("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    ),
    ResourceType.GROUP: ("ALL", "READ", "DESCRIBE", "DELETE"),
    ResourceType.TRANSACTIONAL_ID: ("ALL", "WRITE", "DESCRIBE"),
    ResourceType.CLUSTER: (
        *("ALL", "CREATE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
        *("IDEMPOTENT_WRITE", "ALTER", "DESCRIBE"),
    ),
}
NAMES = {
    ResourceType.TOPIC: (*KEPT, *PASSING, NEVER, ILLEGAL),
    ResourceType.GROUP: GROUPS,
    ResourceType.TRANSACTIONAL_ID: TRANSACTIONS,
    ResourceType.CLUSTER: (CLUSTER_NAME,),
}
PREFIXES = {
    ResourceType.TOPIC: ("o", "orders", "orders-", "drawn-", "secret"),
    ResourceType.GROUP: ("readers", "a"),
    ResourceType.TRANSACTIONAL_ID: ("transfers-", "t"),
}
HOSTS = (WILDCARD, WILDCARD, WILDCARD, "127.0.0.1", "10.1.2.3")


class Step(NamedTuple):
    """A request of a user."""

    user: str
    key: ApiKey
    version: int
    topics: tuple[str, ...]
    group: str
    transactional_id: str
    form: int

    def __str__(self) -> str:
        about = f"{','.join(self.topics)} {self.group} {self.transactional_id} form {self.form}"
        return f"{self.user}: {self.key.name} v{self.version} of {about}"


def draw_acls(chance: random.Random) -> set[Entry]:
    """Few or many rights and prohibitions for users, alone and all together."""
    return {_draw_entry(chance) for _ in range(chance.choice((2, 8, 25, 60, 150)))}


def _draw_entry(chance: random.Random) -> Entry:
    kind = chance.choice(tuple(OPERATIONS))
    pattern, name = PatternType.LITERAL, chance.choice(NAMES[kind])
    if kind in PREFIXES and chance.random() < 0.25:
        pattern, name = PatternType.PREFIXED, chance.choice(PREFIXES[kind])
    elif kind in PREFIXES and chance.random() < 0.25:
        name = WILDCARD
    principal = f"User:{chance.choice(USERS)}"
    if chance.random() < 0.2:
        principal = WILDCARD_PRINCIPAL
    denies = chance.random() < 0.2
    return (
        *(int(kind), name, int(pattern), principal, chance.choice(HOSTS)),
        int(AclOperation[chance.choice(OPERATIONS[kind])]),
        int(PermissionType.DENY if denies else PermissionType.ALLOW),
    )


def draw_step(chance: random.Random, served: Mapping[ApiKey, range]) -> Step:
    """A request of an API and version that are served."""
    key = chance.choice(tuple(served))
    names = PASSING if key in COMING_AND_GOING else (*KEPT, NEVER, ILLEGAL)
    topics = chance.sample(names, chance.randint(1, min(3, len(names))))
    return Step(
        user=chance.choice(USERS),
        key=key,
        version=chance.choice(served[key]),
        topics=tuple(topics),
        group=chance.choice(GROUPS),
        transactional_id=chance.choice(TRANSACTIONS),
        form=chance.randrange(12),
    )
