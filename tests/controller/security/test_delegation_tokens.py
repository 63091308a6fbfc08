"""Delegation tokens on a store in memory, with one broker or two."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from controller.metadata_store.store import SetData
from controller.security.delegation_token_znodes import (
    TOKEN_CHANGES,
    TOKENS,
    DelegationToken,
    decode_token,
    encode_token,
    token_path,
)
from controller.security.delegation_tokens import DelegationTokens, TokenLifetimes, TokenRequest
from protocol.errors import ApiError, ErrorCode
from tests.controller.memory_store import MemoryEnsemble, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Coroutine

NOW_MS = 1_000_000
LIFETIMES = TokenLifetimes(max_ms=10_000, renewal_ms=1_000)
FOR_ALICE = TokenRequest("User:alice", "User:alice", ("User:bob",), -1)


class Broker:
    """A broker's copy of the tokens."""

    def __init__(self, store: MemoryStore, name: str, key: str = "a secret key") -> None:
        self.store = store
        self._drawn = 0
        self._name = name
        self.tokens = DelegationTokens(store, key, LIFETIMES, self._new_id)
        self._news = asyncio.Event()
        self.tokens.notifications.on_news = self._news.set

    def _new_id(self) -> str:
        self._drawn += 1
        return f"{self._name}{self._drawn}"

    async def hear(self) -> None:
        """Wait for news, and process them."""
        async with asyncio.timeout(10):
            await self._news.wait()
        self._news.clear()
        await self.tokens.notifications.refresh()

    def secret(self, token: DelegationToken) -> bytes:
        return self.tokens.hmac_of(token.token_id)


async def two_brokers() -> tuple[Broker, Broker]:
    ensemble = MemoryEnsemble()
    one, two = Broker(ensemble.connect(), "one"), Broker(ensemble.connect(), "two")
    await one.tokens.start()
    await two.tokens.start()
    return one, two


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


async def refused(code: ErrorCode, asking: Coroutine[Any, Any, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        await asking
    assert caught.value.code is code


def test_token_is_known_to_all_brokers_with_the_same_secret() -> None:
    async def scenario() -> None:
        one, two = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        await two.hear()
        assert two.tokens.get(token.token_id) == one.tokens.get(token.token_id) == token
        assert one.secret(token) == two.secret(token)
        assert len(one.secret(token)) == 64

    run(scenario())


def test_secret_is_hmac_sha512_as_apache_computes_it() -> None:
    # Given an id and key, and what Apache Kafka 3.9.1 answered for them.
    tokens = Broker(MemoryEnsemble().connect(), "one", "a secret key").tokens
    assert tokens.hmac_of("tMqLUqwIR7utVuONtaMQkQ").hex().startswith("35a312f3fc")


@pytest.mark.parametrize(
    ("asked_ms", "max_ms"), [(-1, 10_000), (0, 10_000), (5_000, 5_000), (99_999, 10_000)]
)
def test_lifetime_is_bounded(asked_ms: int, max_ms: int) -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        request = dataclasses.replace(FOR_ALICE, max_lifetime_ms=asked_ms)
        token = await one.tokens.create(request, NOW_MS)
        assert (token.issue_ms, token.max_ms) == (NOW_MS, NOW_MS + max_ms)
        assert token.expiry_ms == NOW_MS + 1_000

    run(scenario())


def test_a_token_with_a_short_max_lifetime_expires_at_its_end() -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        token = await one.tokens.create(dataclasses.replace(FOR_ALICE, max_lifetime_ms=5), NOW_MS)
        assert token.expiry_ms == token.max_ms == NOW_MS + 5

    run(scenario())


@pytest.mark.parametrize("principal", ["User:alice", "User:bob"])
def test_owner_and_renewers_prolong_a_token(principal: str) -> None:
    async def scenario() -> None:
        one, two = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        await two.hear()
        expiry_ms = await two.tokens.renew(principal, two.secret(token), -1, NOW_MS + 500)
        assert expiry_ms == NOW_MS + 1_500
        await one.hear()
        renewed = one.tokens.get(token.token_id)
        assert renewed == dataclasses.replace(token, expiry_ms=expiry_ms)

    run(scenario())


@pytest.mark.parametrize(("period_ms", "expected_ms"), [(100, 100), (5_000, 1_000), (0, 1_000)])
def test_renewal_is_bounded_by_the_time_of_expiry(period_ms: int, expected_ms: int) -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        expiry_ms = await one.tokens.renew("User:bob", one.secret(token), period_ms, NOW_MS)
        assert expiry_ms == NOW_MS + expected_ms

    run(scenario())


def test_renewal_is_bounded_by_the_max_lifetime() -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        token = await one.tokens.create(
            dataclasses.replace(FOR_ALICE, max_lifetime_ms=1_200), NOW_MS
        )
        secret = one.secret(token)
        assert await one.tokens.renew("User:bob", secret, -1, NOW_MS + 900) == NOW_MS + 1_200

    run(scenario())


def test_strangers_and_requesters_neither_renew_nor_expire() -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        token = await one.tokens.create(TokenRequest("User:alice", "User:admin", (), -1), NOW_MS)
        for who in ("User:admin", "User:eve"):
            secret, code = one.secret(token), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
            await refused(code, one.tokens.renew(who, secret, -1, NOW_MS))
            await refused(code, one.tokens.expire(who, secret, -1, NOW_MS))

    run(scenario())


def test_secret_of_no_token_is_not_found() -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        await refused(code, one.tokens.renew("User:alice", b"guess", -1, NOW_MS))
        await refused(code, one.tokens.expire("User:alice", b"", -1, NOW_MS))

    run(scenario())


def test_expired_token_is_neither_renewed_nor_shortened_but_can_be_removed() -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        secret, later_ms = one.secret(token), NOW_MS + 1_001
        code = ErrorCode.DELEGATION_TOKEN_EXPIRED
        await refused(code, one.tokens.renew("User:alice", secret, -1, later_ms))
        await refused(code, one.tokens.expire("User:alice", secret, 5, later_ms))
        assert await one.tokens.expire("User:alice", secret, -1, later_ms) == later_ms
        assert one.tokens.get(token.token_id) is None

    run(scenario())


def test_token_that_is_expired_at_once_is_gone_on_all_brokers() -> None:
    async def scenario() -> None:
        one, two = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        await two.hear()
        assert await one.tokens.expire("User:bob", one.secret(token), -1, NOW_MS + 7) == NOW_MS + 7
        await two.hear()
        assert two.tokens.get(token.token_id) is None
        code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        await refused(code, two.tokens.renew("User:bob", two.secret(token), -1, NOW_MS))

    run(scenario())


def test_expiry_can_be_shortened_and_is_bounded_by_the_max_lifetime() -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        secret = one.secret(token)
        assert await one.tokens.expire("User:alice", secret, 10, NOW_MS) == NOW_MS + 10
        far_ms = 2**63 - 1
        assert await one.tokens.expire("User:alice", secret, far_ms, NOW_MS) == NOW_MS + 10_000

    run(scenario())


def test_concurrent_renewals_all_count() -> None:
    async def scenario() -> None:
        one, two = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        await two.hear()
        secret = one.secret(token)
        await asyncio.gather(
            one.tokens.renew("User:alice", secret, 100, NOW_MS),
            two.tokens.expire("User:bob", secret, -1, NOW_MS),
            return_exceptions=True,
        )
        await one.hear()
        await two.hear()
        assert one.tokens.get(token.token_id) is two.tokens.get(token.token_id) is None
        assert await one.store.children(TOKENS) == []

    run(scenario())


def test_only_expired_tokens_are_removed() -> None:
    async def scenario() -> None:
        one, two = await two_brokers()
        old = await one.tokens.create(FOR_ALICE, NOW_MS)
        young = await one.tokens.create(FOR_ALICE, NOW_MS + 500)
        await two.hear()
        await two.tokens.remove_expired(NOW_MS + 1_200)
        await one.hear()
        for broker in (one, two):
            assert broker.tokens.get(old.token_id) is None
            assert broker.tokens.get(young.token_id) == young

    run(scenario())


def test_token_that_another_broker_has_renewed_is_not_removed() -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        renewed = dataclasses.replace(token, expiry_ms=NOW_MS + 5_000)
        # When another broker renews it, and its notification has not arrived yet.
        await one.store.multi([SetData(token_path(token.token_id), encode_token(renewed))])
        await one.tokens.remove_expired(NOW_MS + 1_200)
        assert one.tokens.get(token.token_id) == renewed
        assert await one.store.children(TOKENS) == [token.token_id]

    run(scenario())


def test_tokens_are_there_after_a_restart() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        before = Broker(ensemble.connect(), "one")
        await before.tokens.start()
        token = await before.tokens.create(FOR_ALICE, NOW_MS)
        after = Broker(ensemble.connect(), "two")
        await after.tokens.start()
        assert after.tokens.get(token.token_id) == token
        await after.tokens.renew("User:bob", after.secret(token), -1, NOW_MS)

    run(scenario())


def test_a_malformed_token_is_logged_and_the_others_are_loaded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        one, two = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        await one.store.create(token_path("bad"), b"{")
        await two.tokens.load()
        assert list(two.tokens.all()) == [token]

    run(scenario())
    assert f"{TOKENS}/bad holds a delegation token that cannot be read" in caplog.text


def test_all_tokens_are_read_again_after_a_lost_session() -> None:
    async def scenario() -> None:
        one, two = await two_brokers()
        gone = await one.tokens.create(FOR_ALICE, NOW_MS)
        await two.hear()
        # Given notifications that two never sees, since they are purged meanwhile.
        await one.tokens.expire("User:alice", one.secret(gone), -1, NOW_MS)
        fresh = await one.tokens.create(FOR_ALICE, NOW_MS)
        for name in await one.store.children(TOKEN_CHANGES):
            await one.store.delete(f"{TOKEN_CHANGES}/{name}")
        two.tokens.notifications._has_missed = True
        await two.tokens.notifications.refresh()
        assert list(two.tokens.all()) == [fresh]

    run(scenario())


def test_the_stored_token_equals_the_answered_one() -> None:
    async def scenario() -> None:
        one, _ = await two_brokers()
        token = await one.tokens.create(FOR_ALICE, NOW_MS)
        node = await one.store.get(token_path(token.token_id))
        assert decode_token("", node.data) == token

    run(scenario())
