"""OAUTHBEARER in this broker's own logins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.security.oauth.client import OauthBearerClient
from broker.security.oauth.client_message import ABORT, parse_client_message
from broker.security.oauth.http import ProviderError
from broker.security.oauth.refresh_times import RefreshTimes
from broker.security.sasl.client.mechanism import LoginError
from tests.broker.security.oauth.provider import NOW_MS, ec_key, token

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

TIMES = RefreshTimes(0.8, 0.0, 0, 0, lambda: 0.0)


class Clock:
    """Clock that the test sets."""

    def __init__(self) -> None:
        self.time_ms = NOW_MS

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms


class Provider:
    """Gives out tokens, each for a hundred seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.given: list[str] = []
        self.error: Exception | None = None
        self.odd: str | None = None

    async def retrieve(self) -> str:
        await asyncio.get_running_loop().create_task(_turn())
        if self.error is not None:
            raise self.error
        expiry = self._clock.time_ms // 1000 + 100
        made = token(ec_key(), "ES256", exp=expiry, jti=str(len(self.given)))
        self.given.append(self.odd or made)
        return self.given[-1]


async def _turn() -> None:
    """Let other tasks run."""


def run(
    scenario: Callable[[OauthBearerClient, Provider, Clock], Coroutine[None, None, None]],
) -> None:
    async def main() -> None:
        clock = Clock()
        provider = Provider(clock)
        client = OauthBearerClient(provider.retrieve, {"cluster": "a"}, TIMES, clock)
        await scenario(client, provider, clock)

    asyncio.run(main())


async def shown(client: OauthBearerClient) -> str:
    return parse_client_message(await client.exchange().first()).token


def test_token_is_used_until_most_of_its_life_is_over() -> None:
    async def scenario(client: OauthBearerClient, provider: Provider, clock: Clock) -> None:
        assert await shown(client) == await shown(client) == provider.given[0]
        clock.time_ms += 79_999
        assert await shown(client) == provider.given[0]
        clock.time_ms += 1
        assert await shown(client) == provider.given[1]

    run(scenario)


def test_many_links_ask_for_one_token() -> None:
    async def scenario(client: OauthBearerClient, provider: Provider, clock: Clock) -> None:
        assert len(set(await asyncio.gather(*[shown(client) for _ in range(9)]))) == 1
        assert len(provider.given) == 1

    run(scenario)


def test_extensions_are_sent() -> None:
    async def scenario(client: OauthBearerClient, provider: Provider, clock: Clock) -> None:
        assert b"\x01cluster=a\x01" in await client.exchange().first()

    run(scenario)


def test_refusal_is_ended_and_another_token_is_shown_next() -> None:
    async def scenario(client: OauthBearerClient, provider: Provider, clock: Clock) -> None:
        exchange = client.exchange()
        await exchange.first()
        assert await exchange.respond(b"") is None
        assert await exchange.respond(b'{"status":"invalid_token"}') == ABORT
        assert await shown(client) == provider.given[1]

    run(scenario)


def test_provider_that_is_away_fails_the_login_alone() -> None:
    async def scenario(client: OauthBearerClient, provider: Provider, clock: Clock) -> None:
        provider.error = ProviderError("https://id answered 503")
        with pytest.raises(LoginError, match="503"):
            await shown(client)
        provider.error = None
        assert await shown(client)

    run(scenario)


@pytest.mark.parametrize("odd", ["", "a.b", "a.b.c", "a.e30.c", token(ec_key(), "ES256", exp="x")])
def test_token_without_an_end_is_not_shown(odd: str) -> None:
    async def scenario(client: OauthBearerClient, provider: Provider, clock: Clock) -> None:
        provider.odd = odd or "x"
        with pytest.raises(LoginError, match="when it expires"):
            await shown(client)

    run(scenario)
