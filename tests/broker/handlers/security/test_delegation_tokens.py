"""Create, Renew, Expire and DescribeDelegationToken, for whom and on which listeners."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from broker.requests.api_table import ROUTES
from broker.requests.context import Context
from broker.requests.steps import STEPS_AT_ONCE
from broker.runtime.deferred import Deferred
from broker.security.principal import TokenPrincipal
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from tests.broker.handlers.one_broker import OneBroker, as_bytes, run_broker
from tests.controller.harness import NOW_MS
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from protocol.schema import Request

KEYS = {
    "listeners": ("PLAINTEXT://:9092", "SSL://:9093", "SASL_PLAINTEXT://:9094"),
    "delegation_token_secret_key": "a secret key",
    "delegation_token_expiry_time_ms": 1_000,
    "delegation_token_max_lifetime_ms": 10_000,
}
DAY_MS = 86_400_000


@dataclasses.dataclass
class Rules:
    """Authorizer that allows the given operations to all principals."""

    allowed: set[tuple[AclOperation, ResourceType, str]]

    def allows(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        return (operation, kind, name) in self.allowed

    would_allow = allows

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        return False


class Client:
    """Asks as a principal, on a listener."""

    def __init__(self, broker: OneBroker, principal: str, listener: str = "SASL_PLAINTEXT") -> None:
        self._broker = broker
        self._principal = principal
        self._listener = listener

    async def ask(self, request: Request, version: int, now_ms: int = NOW_MS) -> Any:
        """Through encoding, handler and encoding, as over the wire."""
        cls = type(request)
        context = Context(
            self._broker.services,
            version,
            "a-client",
            self._listener,
            "/127.0.0.1",
            self._principal,
            now_ms,
        )
        decoded = cls.decode(version, memoryview(bytearray(request.encode(version))))
        answer = ROUTES[int(cls.API_KEY)].handler(context, decoded)
        if isinstance(answer, Deferred):
            answer = await arrival(answer)
        encoded = b"".join(as_bytes(part) for part in answer.encode_parts(version))
        return cls.RESPONSE.decode(version, encoded)

    async def create(self, *renewers: str, version: int = 3, owner: str | None = None) -> Any:
        renewer = CreateDelegationTokenRequest.Renewer
        request = CreateDelegationTokenRequest(
            renewers=[renewer(principal_type="User", principal_name=name) for name in renewers],
            max_lifetime_ms=-1,
        )
        if owner is not None:
            request.owner_principal_type, request.owner_principal_name = "User", owner
        return await self.ask(request, version)

    async def describe(self, *owners: str, version: int = 3) -> Any:
        owner = DescribeDelegationTokenRequest.Owner
        asked = [owner(principal_type="User", principal_name=name) for name in owners] or None
        return await self.ask(DescribeDelegationTokenRequest(owners=asked), version)


def run(
    directory: Path, scenario: Callable[[OneBroker], Coroutine[None, None, None]], **keys: Any
) -> None:
    async def with_tokens(broker: OneBroker) -> None:
        if broker.services.delegation_tokens is not None:
            await broker.services.delegation_tokens.start()
        await scenario(broker)

    run_broker(directory, with_tokens, **(KEYS | keys))


def every_request() -> list[Request]:
    return [
        CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1),
        RenewDelegationTokenRequest(hmac=b"guess", renew_period_ms=-1),
        ExpireDelegationTokenRequest(hmac=b"guess", expiry_time_period_ms=-1),
        DescribeDelegationTokenRequest(owners=None),
    ]


@pytest.mark.parametrize("version", range(4))
def test_token_is_created_and_described(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        alice = Client(broker, "User:alice")
        token = await alice.create("bob", version=version)
        assert token.error_code == ErrorCode.NONE
        assert (token.principal_type, token.principal_name) == ("User", "alice")
        assert (token.issue_timestamp_ms, token.max_timestamp_ms) == (NOW_MS, NOW_MS + 10_000)
        assert token.expiry_timestamp_ms == NOW_MS + 1_000
        assert len(token.token_id) == 22
        described = await alice.describe(version=version)
        (only,) = described.tokens
        assert (only.token_id, only.hmac) == (token.token_id, token.hmac)
        assert [(one.principal_type, one.principal_name) for one in only.renewers] == [
            ("User", "bob")
        ]

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", range(3))
def test_token_is_renewed_and_expired(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        alice, bob = Client(broker, "User:alice"), Client(broker, "User:bob")
        token = await alice.create("bob")
        renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
        renewed = await bob.ask(renewal, version, NOW_MS + 300)
        assert renewed.error_code == ErrorCode.NONE
        assert renewed.expiry_timestamp_ms == NOW_MS + 1_300
        expiry = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
        expired = await alice.ask(expiry, version, NOW_MS + 400)
        assert (expired.error_code, expired.expiry_timestamp_ms) == (
            ErrorCode.NONE,
            NOW_MS + 400,
        )
        assert (await alice.describe()).tokens == []
        missing = await alice.ask(expiry, version)
        assert missing.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("principal", "listener"),
    [
        ("User:ANONYMOUS", "PLAINTEXT"),
        ("User:ANONYMOUS", "SSL"),
        (TokenPrincipal("User:alice"), "SASL_PLAINTEXT"),
    ],
)
def test_token_requests_of_anonymous_clients_and_of_tokens_are_refused(
    principal: str, listener: str, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        client = Client(broker, principal, listener)
        for request in every_request():
            answer = await client.ask(request, 2)
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

    run(tmp_path, scenario)


def test_clients_with_certificates_may_ask(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        token = await Client(broker, "User:CN=alice", "SSL").create()
        assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "CN=alice")

    run(tmp_path, scenario)


def test_without_a_secret_key_there_are_no_tokens(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        for request in every_request():
            answer = await Client(broker, "User:alice").ask(request, 2)
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED

    run(tmp_path, scenario, delegation_token_secret_key=None)


def test_older_name_of_the_secret_key_is_accepted(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert (await Client(broker, "User:alice").create()).error_code == ErrorCode.NONE

    run(tmp_path, scenario, delegation_token_secret_key=None, delegation_token_master_key="key")


def test_renewers_are_users(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        renewer = CreateDelegationTokenRequest.Renewer(principal_type="Group", principal_name="g")
        request = CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1)
        answer = await Client(broker, "User:alice").ask(request, 3)
        assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        assert (answer.token_id, answer.hmac) == ("", b"")

    run(tmp_path, scenario)


def test_tokens_for_others_need_create_tokens_on_the_owner(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        admin = Client(broker, "User:admin")
        rules = Rules(set())
        broker.services.authorizer = rules
        refusal = await admin.create(owner="alice")
        assert refusal.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        rules.allowed.add((AclOperation.CREATE_TOKENS, ResourceType.USER, "User:alice"))
        token = await admin.create(owner="alice")
        assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "alice")
        assert token.token_requester_principal_name == "admin"
        # Then it is the owner's to renew, not the requester's.
        renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
        assert (await Client(broker, "User:alice").ask(renewal, 2)).error_code == ErrorCode.NONE
        mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert (await admin.ask(renewal, 2)).error_code == mismatch

    run(tmp_path, scenario)


def test_tokens_of_others_are_described_with_describe_rights_only(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        rules = Rules(set())
        broker.services.authorizer = rules
        mine = await Client(broker, "User:alice").create("bob")
        theirs = await Client(broker, "User:carol").create()
        admin = Client(broker, "User:admin")

        async def shown(client: Client, *owners: str) -> set[str]:
            return {token.token_id for token in (await client.describe(*owners)).tokens}

        assert await shown(Client(broker, "User:bob")) == {mine.token_id}
        assert await shown(admin) == set()
        rules.allowed.add((AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, mine.token_id))
        assert await shown(admin) == {mine.token_id}
        rules.allowed.add((AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol"))
        assert await shown(admin) == {mine.token_id, theirs.token_id}
        assert await shown(admin, "carol", "nobody") == {theirs.token_id}
        assert await shown(admin, "bob") == {mine.token_id}

    run(tmp_path, scenario)


def test_empty_list_of_owners_asks_for_nothing(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        alice = Client(broker, "User:alice")
        await alice.create()
        answer = await alice.ask(DescribeDelegationTokenRequest(owners=[]), 3)
        assert (answer.error_code, answer.tokens) == (ErrorCode.NONE, [])

    run(tmp_path, scenario)


def test_expired_tokens_are_removed_by_the_controller(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        tokens, expiry = broker.services.delegation_tokens, broker.parts.token_expiry
        assert tokens is not None
        assert expiry is not None
        alice = Client(broker, "User:alice")
        token = await alice.create()
        await tokens.renew("User:alice", token.hmac, 1, NOW_MS - 100)
        expiry.start(DAY_MS)
        await broker.settle("expire delegation tokens")
        expiry.stop()
        assert (await alice.describe()).tokens == []

    run(tmp_path, scenario)


def test_tokens_of_many_owners_are_described_in_steps(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        alice = Client(broker, "User:alice")
        created = await alice.create()
        names = [f"stranger{number}" for number in range(3 * STEPS_AT_ONCE)]
        described = await alice.describe(*names, "alice")
        assert [token.token_id for token in described.tokens] == [created.token_id]
        assert (await alice.describe(*names)).tokens == []

    run(tmp_path, scenario)
