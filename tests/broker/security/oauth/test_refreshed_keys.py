"""Keys of a provider that changes them, or is away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.runtime.deferred import Deferred
from broker.security.oauth.bearer_token import InvalidTokenError
from broker.security.oauth.http import ProviderError
from broker.security.oauth.jwks import JsonWebKeys, parse_keys
from broker.security.oauth.refreshed_keys import RefreshedKeys, RefreshPace
from tests.broker.security.oauth.provider import jwk, key_set, rsa_key
from tests.support.broker_parts.virtual_time import LoopClock, run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

HOUR = 3600.0
PACE = RefreshPace(refresh_ms=3_600_000, first_retry_ms=100, longest_retry_ms=10_000)


class Provider:
    """Publishes keys, unless it is away; notes when it was asked."""

    def __init__(self) -> None:
        self.keys = [jwk(rsa_key(), kid="one")]
        self.is_away = False
        self.asked_at: list[float] = []

    async def read(self) -> JsonWebKeys:
        self.asked_at.append(asyncio.get_running_loop().time())
        await asyncio.get_running_loop().create_task(pause(0.05))
        if self.is_away:
            raise ProviderError("http://id answered 503 away")
        return parse_keys(key_set(*self.keys))


async def pause(seconds: float) -> None:
    """Let time pass."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, over.set_result, None)
    await over


def run(scenario: Callable[[Provider, RefreshedKeys], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        provider = Provider()
        keys = RefreshedKeys("http://id", provider.read, PACE, LoopClock())
        task = asyncio.get_running_loop().create_task(keys.run())
        try:
            await scenario(provider, keys)
        finally:
            task.cancel()

    run_in_virtual_time(main())


def test_first_clients_wait_until_keys_are_there() -> None:
    async def scenario(provider: Provider, keys: RefreshedKeys) -> None:
        first, gone = keys.when_loaded(), keys.when_loaded()
        assert first is not None
        assert gone is not None
        gone.abandon()
        assert keys.find("one", "RS256") is None
        await pause(1)
        assert first.value is None
        assert keys.when_loaded() is None
        assert keys.find("one", "RS256") is not None

    run(scenario)


def test_logins_do_not_wait_for_an_unreachable_provider() -> None:
    async def scenario(provider: Provider, keys: RefreshedKeys) -> None:
        provider.is_away = True
        first = keys.when_loaded()
        assert isinstance(first, Deferred)
        await pause(1)
        with pytest.raises(InvalidTokenError):
            _ = first.value
        assert keys.when_loaded() is None
        provider.is_away = False
        await pause(10)
        assert keys.find("one", "RS256") is not None

    run(scenario)


def test_keys_are_read_again_after_a_while_and_kept_when_that_fails() -> None:
    async def scenario(provider: Provider, keys: RefreshedKeys) -> None:
        await pause(1)
        provider.keys = [jwk(rsa_key(2), kid="two")]
        provider.is_away = True
        await pause(HOUR + 100)
        assert keys.find("one", "RS256") is not None
        pauses = [b - a for a, b in zip(provider.asked_at, provider.asked_at[1:], strict=False)]
        assert pauses[0] == pytest.approx(HOUR, abs=1)
        assert pauses[1] < 0.2
        assert max(pauses[1:]) == pytest.approx(10, abs=1)
        provider.is_away = False
        await pause(11)
        assert keys.find("two", "RS256") is not None
        assert keys.find("one", "RS256") is None

    run(scenario)


def test_unknown_key_has_keys_read_again_but_not_for_every_stranger() -> None:
    async def scenario(provider: Provider, keys: RefreshedKeys) -> None:
        await pause(11)
        provider.keys.append(jwk(rsa_key(2), kid="two"))
        assert keys.find("two", "RS256") is None
        await pause(1)
        assert keys.find("two", "RS256") is not None
        for number in range(1000):
            assert keys.find(f"guess {number}", "RS256") is None
            await pause(0.02)
        assert len(provider.asked_at) == 4  # at first, for two, and twice in 20 seconds

    run(scenario)


def test_endless_key_id_has_nothing_read() -> None:
    async def scenario(provider: Provider, keys: RefreshedKeys) -> None:
        await pause(11)
        assert keys.find("x" * 1001, "RS256") is None
        await pause(1)
        assert len(provider.asked_at) == 1

    run(scenario)
