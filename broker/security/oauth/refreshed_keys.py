"""Keys of a provider that may change: read again now and then, and when a token names another.

They are read before the first token is checked: clients wait for that, or for its failure. When the
keys cannot be read again, the ones that were read before stay in use.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.runtime.deferred import Deferred
from broker.security.oauth.bearer_token import InvalidTokenError
from broker.security.oauth.http import ProviderError
from broker.security.oauth.jwks import NO_KEYS, UnusableKeysError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jwt import PyJWK

    from broker.runtime.clock import Clock
    from broker.security.oauth.jwks import JsonWebKeys

LONGEST_KEY_ID = 1000
"""A token that names its key by more characters does not have the keys read (as in Apache)."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RefreshPace:
    """Intervals at which keys are read, in milliseconds."""

    refresh_ms: int
    first_retry_ms: int
    longest_retry_ms: int
    """Also the shortest time between two reads that tokens with unknown keys ask for."""


class RefreshedKeys:
    """The keys at one address."""

    def __init__(
        self,
        location: str,
        read: Callable[[], Awaitable[JsonWebKeys]],
        pace: RefreshPace,
        clock: Clock,
    ) -> None:
        """`read` raises ProviderError or UnusableKeysError. `run` has to be kept running."""
        self._location = location
        self._read = read
        self._pace = pace
        self._clock = clock
        self._keys = NO_KEYS
        self._waiting: dict[Deferred[None], None] = {}
        self._has_failed = False
        self._wanted = asyncio.Event()
        self._read_at_ms = 0

    def find(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        """The key for a token's header; if there is none, the keys are read again soon."""
        key = self._keys.find(key_id, algorithm)
        if key is None and key_id is not None and len(key_id) <= LONGEST_KEY_ID:
            age_ms = self._clock.monotonic_ms() - self._read_at_ms
            if age_ms >= self._pace.longest_retry_ms:
                self._wanted.set()
        return key

    def when_loaded(self) -> Deferred[None] | None:
        """None once they were read, or could not be; else comes when they are."""
        if len(self._keys) or self._has_failed:
            return None
        loaded: Deferred[None] = Deferred(on_abandon=lambda: self._waiting.pop(loaded, None))
        self._waiting[loaded] = None
        return loaded

    async def run(self) -> None:
        """Read the keys again and again."""
        pause_ms = self._pace.first_retry_ms
        while True:
            is_read = await self._refresh()
            self._wanted.clear()  # keys missing before may have been added
            if is_read:
                pause_ms = self._pace.first_retry_ms
                await self._rest(self._pace.refresh_ms)
            else:
                await self._rest(pause_ms)
                pause_ms = min(2 * pause_ms, self._pace.longest_retry_ms)

    async def _refresh(self) -> bool:
        """Return whether the keys could be read."""
        is_read = True
        try:
            self._keys = await self._read()
        except (ProviderError, UnusableKeysError) as error:
            logger.warning("JWKS refresh failed, %s: %s", self._location, error)
            self._has_failed, is_read = True, False
        self._read_at_ms = self._clock.monotonic_ms()
        waiting, self._waiting = self._waiting, {}
        for one in waiting:
            if len(self._keys):
                one.complete(None)
            else:
                one.fail(InvalidTokenError("there are no keys to check tokens with yet"))
        return is_read

    async def _rest(self, pause_ms: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_ms / 1000):
                await self._wanted.wait()
