"""Delegation tokens as SCRAM's credentials."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING

from broker.runtime.deferred import Deferred
from broker.security.sasl.token_credentials import TokenCredentials
from controller.security.delegation_tokens import DelegationTokens, TokenLifetimes, TokenRequest
from protocol.scram_types import ScramMechanism, credential_from, salted_password
from tests.controller.memory_store import MemoryEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from controller.security.delegation_token_znodes import DelegationToken

NOW_MS = 1_000_000


class Clock:
    """Clock that the test sets."""

    def __init__(self) -> None:
        self.time_ms = NOW_MS

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms


class Thread:
    """Does what it is given when the test says so."""

    def __init__(self) -> None:
        self.given: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def run(self, work: Callable[[], Any]) -> Deferred[Any]:
        outcome: Deferred[Any] = Deferred()
        self.given.append((work, outcome))
        return outcome

    def do_one(self) -> None:
        work, outcome = self.given.pop(0)
        outcome.complete(work())


class Broker:
    """Tokens, and what SCRAM sees of them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.thread = Thread()
        names = iter(f"token{number}" for number in range(100))
        lifetimes = TokenLifetimes(10_000, 1_000)
        store = MemoryEnsemble().connect()
        self.tokens = DelegationTokens(store, "a secret key", lifetimes, lambda: next(names))
        salts = iter(range(100))
        self.credentials = TokenCredentials(
            self.tokens, self.clock, lambda count: bytes([next(salts)]) * count, self.thread.run
        )

    async def create(self) -> DelegationToken:
        request = TokenRequest("User:alice", "User:admin", (), -1)
        return await self.tokens.create(request, self.clock.time_ms)


def run(scenario: Callable[[Broker], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        broker = Broker()
        await broker.tokens.start()
        await scenario(broker)

    asyncio.run(main())


def test_password_is_the_hmac_in_base64() -> None:
    async def scenario(broker: Broker) -> None:
        token = await broker.create()
        for mechanism in ScramMechanism:
            found = broker.credentials.token(mechanism, token.token_id)
            assert found is not None
            assert (found.owner, found.expires_at_ms) == ("User:alice", NOW_MS + 1_000)
            password = b64encode(broker.tokens.hmac_of(token.token_id))
            salt = found.credential.salt
            salted = salted_password(mechanism, password, salt, 4096)
            assert found.credential == credential_from(mechanism, salted, salt, 4096)

    run(scenario)


def test_credentials_are_made_on_a_thread_one_after_the_other() -> None:
    async def scenario(broker: Broker) -> None:
        tokens = [await broker.create() for _ in range(3)]
        for token in tokens:
            assert len(broker.thread.given) == 1
            broker.thread.do_one()
            found = broker.credentials.token(ScramMechanism.SCRAM_SHA_256, token.token_id)
            assert found is not None
            assert found.credential.salt[0] == tokens.index(token)
        assert broker.thread.given == []

    run(scenario)


def test_a_token_credential_stays_the_same_once_computed_on_the_thread() -> None:
    async def scenario(broker: Broker) -> None:
        token = await broker.create()
        early = broker.credentials.token(ScramMechanism.SCRAM_SHA_512, token.token_id)
        broker.thread.do_one()
        assert broker.credentials.token(ScramMechanism.SCRAM_SHA_512, token.token_id) == early

    run(scenario)


def test_credential_is_of_the_tokens_latest_expiry() -> None:
    async def scenario(broker: Broker) -> None:
        token = await broker.create()
        secret = broker.tokens.hmac_of(token.token_id)
        await broker.tokens.renew("User:alice", secret, -1, NOW_MS + 500)
        found = broker.credentials.token(ScramMechanism.SCRAM_SHA_256, token.token_id)
        assert found is not None
        assert found.expires_at_ms == NOW_MS + 1_500

    run(scenario)


def test_an_expired_token_not_yet_removed_does_not_authenticate() -> None:
    async def scenario(broker: Broker) -> None:
        token = await broker.create()
        broker.clock.time_ms += 1_000
        assert broker.credentials.token(ScramMechanism.SCRAM_SHA_256, token.token_id) is not None
        broker.clock.time_ms += 1
        assert broker.credentials.token(ScramMechanism.SCRAM_SHA_256, token.token_id) is None

    run(scenario)


def test_a_removed_token_does_not_authenticate_and_leaves_no_credential() -> None:
    async def scenario(broker: Broker) -> None:
        one, two = await broker.create(), await broker.create()
        for token in (two, one):
            secret = broker.tokens.hmac_of(token.token_id)
            await broker.tokens.expire("User:alice", secret, -1, NOW_MS)
            assert broker.credentials.token(ScramMechanism.SCRAM_SHA_256, token.token_id) is None
        broker.thread.do_one()
        assert broker.thread.given == []
        assert broker.credentials._made == {}

    run(scenario)


def test_failure_on_the_thread_costs_no_other_token() -> None:
    async def scenario(broker: Broker) -> None:
        one, two = await broker.create(), await broker.create()
        broker.thread.given.pop()[1].fail(MemoryError())
        broker.thread.do_one()
        for token in (one, two):
            assert broker.credentials.token(ScramMechanism.SCRAM_SHA_256, token.token_id)

    run(scenario)
