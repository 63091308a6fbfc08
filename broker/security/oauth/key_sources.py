"""Sources of identity providers' keys: a file, read once, or an address."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname

from broker.security.oauth.http import ask
from broker.security.oauth.jwks import UnusableKeysError, parse_keys
from broker.security.oauth.refreshed_keys import RefreshedKeys, RefreshPace
from config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Executor
    from typing import Any

    from jwt import PyJWK

    from broker.runtime.clock import Clock
    from broker.security.oauth.jwks import JsonWebKeys
    from broker.security.oauth.jwt_validation import SigningKeys
    from config.broker import BrokerConfig

KEY = "sasl.oauthbearer.jwks.endpoint.url"


@dataclass(frozen=True, slots=True)
class FileKeys:
    """Keys out of a file, which are there at once."""

    keys: JsonWebKeys

    def find(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        """The key for a token's header."""
        return self.keys.find(key_id, algorithm)

    def when_loaded(self) -> None:
        """No effect: they are loaded."""


@dataclass(slots=True)
class KeySources:
    """The keys of all listeners; those of one address are read for all of them together."""

    clock: Clock
    keep: Callable[[str, Callable[[], Coroutine[Any, Any, None]]], object]
    """Runs what must not end, in a task that the broker owns."""
    threads: Callable[[int, str], Executor]
    _by_address: dict[tuple[str, RefreshPace], RefreshedKeys] = field(default_factory=dict)
    _executor: Executor | None = None

    def of(self, config: BrokerConfig) -> SigningKeys:
        """The keys that are configured for a listener. Raises ConfigError."""
        url = config.sasl_oauthbearer_jwks_endpoint_url
        parts = urlsplit(url or "")
        if not url or parts.scheme.lower() not in ("file", "http", "https"):
            raise ConfigError(f"{KEY} has to be a file, http or https URL", KEY)
        if parts.scheme.lower() == "file":
            return FileKeys(_read_file(url2pathname(parts.path)))
        pace = RefreshPace(
            refresh_ms=config.sasl_oauthbearer_jwks_endpoint_refresh_ms,
            first_retry_ms=config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
            longest_retry_ms=config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
        )
        return self._refreshed(url, pace)

    def _refreshed(self, url: str, pace: RefreshPace) -> RefreshedKeys:
        known = self._by_address.get((url, pace))
        if known is None:
            read = partial(self._on_thread, partial(_read_address, url))
            known = self._by_address[url, pace] = RefreshedKeys(url, read, pace, self.clock)
            self.keep("refresh of JWKS", known.run)
        return known

    async def _on_thread(self, work: Callable[[], JsonWebKeys]) -> JsonWebKeys:
        if self._executor is None:
            self._executor = self.threads(1, "jwks")
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _read_address(url: str) -> JsonWebKeys:
    """Ask, and take the answer apart, which may be long."""
    return parse_keys(ask(Request(url)))  # noqa: S310 - the scheme was checked


def _read_file(path: str) -> JsonWebKeys:
    try:
        return parse_keys(Path(path).read_bytes())
    except (OSError, UnusableKeysError) as error:
        raise ConfigError(f"{KEY}, {path}: {error}", KEY) from None
