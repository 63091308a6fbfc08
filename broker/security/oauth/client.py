"""OAUTHBEARER at the side of a client: this broker presents a token when it logs in to others.

A token is kept for most of its lifetime (`refresh_times`). The signature is not checked: the other
broker does.
"""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

from broker.security.oauth.client_message import ABORT, client_message
from broker.security.oauth.http import ProviderError
from broker.security.oauth.mechanism import OAUTHBEARER
from broker.security.sasl.client.mechanism import LoginError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from broker.runtime.clock import Clock
    from broker.security.oauth.refresh_times import RefreshTimes

MS_PER_SECOND = 1000
PARTS = 3


class OauthBearerClient:
    """OAUTHBEARER authentication of this broker to others."""

    name = OAUTHBEARER

    def __init__(
        self,
        retrieve: Callable[[], Awaitable[str]],
        extensions: Mapping[str, str],
        times: RefreshTimes,
        clock: Clock,
    ) -> None:
        """`retrieve` gets a new token, or raises ProviderError."""
        self._retrieve = retrieve
        self._extensions = dict(extensions)
        self._times = times
        self._clock = clock
        self._token = ""
        self._stale_at_ms = 0
        self._turn = asyncio.Lock()

    def exchange(self) -> OauthBearerClientExchange:
        """Begin on a connection."""
        return OauthBearerClientExchange(self)

    async def message(self) -> bytes:
        """Initial client message with a token. Raises LoginError."""
        async with self._turn:
            now_ms = self._clock.now_ms()
            if now_ms >= self._stale_at_ms:
                try:
                    self._token = await self._retrieve()
                except ProviderError as error:
                    raise LoginError(f"no token: {error}") from None
                self._stale_at_ms = self._times.refresh_at_ms(now_ms, _expiry_ms(self._token))
        return client_message(self._token, self._extensions)

    def refused(self) -> None:
        """Show another one next time."""
        self._stale_at_ms = 0


class OauthBearerClientExchange:
    """One authentication at another broker."""

    def __init__(self, client: OauthBearerClient) -> None:
        self._client = client

    async def first(self) -> bytes:
        """The token."""
        return await self._client.message()

    async def respond(self, challenge: bytes) -> bytes | None:
        """End a failed exchange as RFC 7628 requires; return None after a successful one."""
        if not challenge:
            return None
        self._client.refused()
        return ABORT


def _expiry_ms(token: str) -> int:
    """Expiry time of a token. Raises LoginError for malformed tokens."""
    parts = token.split(".")
    try:
        if len(parts) != PARTS:
            raise ValueError(len(parts))
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return int(claims["exp"] * MS_PER_SECOND)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise LoginError("the provider's token says not when it expires") from None
