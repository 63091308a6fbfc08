"""Delegation tokens are answered as by Apache Kafka's brokers: drawn requests against both.

Three users, one of whom may do everything, create, renew, expire and list tokens, their own and
each other's. The errors are the same, so is who sees what, and so are lifetimes to within a minute.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from protocol.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages.acls import CreateAclsRequest
from protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from tests.interop.security.contestants import ACL, STANDARD, Contestant
from tests.support.brokers.apache import apache_3, apache_4
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.java]

STEPS = 150
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
WAIT_SECONDS = 60.0
USERS = ("alice", "bob", "carol")
SUPER = "carol"
KEYS = {
    "delegation.token.secret.key": "a secret key",
    "delegation.token.max.lifetime.ms": str(24 * HOUR_MS),
    "delegation.token.expiry.time.ms": str(4 * HOUR_MS),
    "super.users": f"User:ANONYMOUS;User:{SUPER}",
}
LIFETIMES_MS = (-1, 0, HOUR_MS, 10 * HOUR_MS, 99 * HOUR_MS)
RENEWALS_MS = (-1, HOUR_MS, 2 * HOUR_MS)
EXPIRIES_MS = (-1, HOUR_MS, 3 * HOUR_MS, 999 * HOUR_MS)
OF_4_ALONE = ((0, 9 * HOUR_MS), (0,))
"""Renewals and expiries that 3.9 takes otherwise, as GAPS.md says: beyond the time of expiry, and
of tokens that have expired."""
GRANTS = (
    (AclOperation.CREATE_TOKENS, "User:bob", "User:alice"),
    (AclOperation.DESCRIBE_TOKENS, "User:alice", "User:bob"),
)
"""Operation, principal it is allowed to, and user it is allowed on."""

Periods = tuple[tuple[int, ...], tuple[int, ...]]
"""Periods of renewals and of expiries, in milliseconds."""
Shown = dict[int, tuple[str, str, tuple[str, ...], int, int]]
"""Tokens by number: owner, requester, renewers, minutes until expiry and until the end."""


class Side:
    """A broker, and its tokens by the numbers they have at both."""

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self.tokens: list[tuple[str, bytes]] = []
        """Ids and HMACs."""

    def ask(self, user: str, request: Request, version: int) -> Any:
        """The answer."""
        return self.contestant.users[user].ask(request, version)

    def grant(self) -> None:
        """Create the access control lists."""
        creations = [
            CreateAclsRequest.Creation(
                resource_type=ResourceType.USER,
                resource_name=owner,
                resource_pattern_type=PatternType.LITERAL,
                principal=principal,
                host="*",
                operation=operation,
                permission_type=PermissionType.ALLOW,
            )
            for operation, owner, principal in GRANTS
        ]
        answer = self.contestant.admin.ask(CreateAclsRequest(creations=creations), 2)
        assert [one.error_code for one in answer.results] == [0] * len(GRANTS)

    def create(self, user: str, request: CreateDelegationTokenRequest) -> tuple[object, ...]:
        """The error, or whose it is and how long it lives."""
        made = self.ask(user, request, 3)
        if made.error_code:
            return (made.error_code,)
        self.tokens.append((made.token_id, made.hmac))
        self.wait(made.token_id, made.expiry_timestamp_ms)
        names = (made.principal_name, made.token_requester_principal_name)
        issued_ms = made.issue_timestamp_ms
        lives = (made.expiry_timestamp_ms - issued_ms, made.max_timestamp_ms - issued_ms)
        return (0, *names, *lives)

    def wait(self, token_id: str, expiry_ms: int | None) -> None:
        """Wait until a token is described so, or no longer: Apache's broker learns of it later."""

        def is_shown() -> bool:
            found = self.ask(SUPER, DescribeDelegationTokenRequest(owners=None), 3).tokens
            shown = {one.token_id: one.expiry_timestamp for one in found}
            return shown.get(token_id) == expiry_ms

        assert wait_until(is_shown, WAIT_SECONDS)

    def describe(self, user: str, request: DescribeDelegationTokenRequest) -> tuple[int, Shown]:
        """The error, and what is shown."""
        answer = self.ask(user, request, 3)
        numbers = {token_id: number for number, (token_id, _) in enumerate(self.tokens)}
        shown = {
            numbers[one.token_id]: (
                one.principal_name,
                one.token_requester_principal_name,
                tuple(sorted(renewer.principal_name for renewer in one.renewers)),
                (one.expiry_timestamp - one.issue_timestamp) // MINUTE_MS,
                (one.max_timestamp - one.issue_timestamp) // MINUTE_MS,
            )
            for one in answer.tokens
        }
        assert all(one.hmac == dict(self.tokens)[one.token_id] for one in answer.tokens)
        return answer.error_code, shown

    def change(self, user: str, number: int, kind: str, period_ms: int) -> int:
        """The error of a renewal or an expiry; of a token that never was with number -1."""
        token_id, secret = self.tokens[number] if number >= 0 else ("", b"guess")
        request: Request = (
            RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
            if kind == "renew"
            else ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
        )
        answer = self.ask(user, request, 2)
        if not answer.error_code:
            is_gone = kind == "expire" and period_ms < 0
            self.wait(token_id, None if is_gone else answer.expiry_timestamp_ms)
        code: int = answer.error_code
        return code


def duel(sides: tuple[Side, Side], chance: random.Random, periods: Periods) -> None:
    """Ask both the same, again and again."""
    refused = 0
    for _ in range(STEPS):
        user, kind = chance.choice(USERS), chance.choice(("create", "renew", "expire", "describe"))
        if kind == "create":
            creation = drawn_creation(chance)
            answers: list[Any] = [side.create(user, creation) for side in sides]
            refused += answers[0][0] != 0
        elif kind == "describe":
            names = chance.sample(USERS, chance.randrange(3))
            owner = DescribeDelegationTokenRequest.Owner
            owners = [owner(principal_type="User", principal_name=name) for name in names]
            listing = DescribeDelegationTokenRequest(owners=chance.choice([owners, None]))
            answers = [side.describe(user, listing) for side in sides]
        else:
            number = chance.randrange(-1, len(sides[0].tokens))
            period_ms = chance.choice(periods[kind == "expire"])
            answers = [side.change(user, number, kind, period_ms) for side in sides]
            refused += answers[0] != 0
        assert answers[0] == answers[1], f"{user}: {kind}"
    assert STEPS // 10 < refused < STEPS


def drawn_creation(chance: random.Random) -> CreateDelegationTokenRequest:
    """For the client or for another, with renewers that may be of an odd kind."""
    renewer = CreateDelegationTokenRequest.Renewer
    kinds = ("User", "User", "User", "Group")
    owner = chance.choice((None, None, *USERS))
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=[
            renewer(principal_type=chance.choice(kinds), principal_name=name)
            for name in chance.sample(USERS, chance.randrange(3))
        ],
        max_lifetime_ms=chance.choice(LIFETIMES_MS),
    )


def fight(sides: tuple[Side, Side], more: Periods = ((), ())) -> None:
    """Start both, and let them."""
    periods = (RENEWALS_MS + more[0], EXPIRIES_MS + more[1])
    try:
        for side in sides:
            side.contestant.process.start()
            side.grant()
        duel(sides, random.Random(7), periods)
    finally:
        for side in sides:
            side.contestant.close()


def side(make: Callable[[int, dict[str, str]], BrokerProcess], authorizer: str) -> Side:
    """A broker with tokens."""
    return Side(Contestant.of(lambda port, keys: make(port, keys | KEYS), authorizer))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tokens_are_those_of_apache_4(tmp_path: Path) -> None:
    fight(
        (
            side(lambda port, keys: ours(tmp_path / "ours", keys, port=port), STANDARD),
            side(lambda port, keys: apache_4(tmp_path / "theirs", keys, port=port), STANDARD),
        ),
        OF_4_ALONE,
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tokens_with_zookeeper_are_those_of_apache_3(tmp_path: Path) -> None:
    servers = [ZooKeeperServer(tmp_path / name) for name in ("zookeeper", "their-zookeeper")]

    def our_broker(port: int, keys: dict[str, str]) -> BrokerProcess:
        keys["zookeeper.connect"] = f"127.0.0.1:{servers[0].port}"
        return ours(tmp_path / "ours", keys, port=port)

    def their_broker(port: int, keys: dict[str, str]) -> BrokerProcess:
        return apache_3(tmp_path / "theirs", servers[1].port, keys, port=port)

    try:
        for server in servers:
            server.start()
        fight((side(our_broker, ACL), side(their_broker, ACL)))
    finally:
        for server in servers:
            server.kill()
