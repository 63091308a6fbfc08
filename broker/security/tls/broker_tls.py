"""TLS of a broker: that of its listeners, and of its links to other brokers.

Stores are read when the broker starts, when a TLS key changes, and when a store file has changed
(`ssl.store.check.interval.ms`). If a new one is unusable, that is logged and the old one stays in
use: a broker with a wrong new certificate keeps the current one.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.runtime.addresses.host_names import system_host
from broker.security.tls.handshakes import Handshakes
from broker.security.tls.listener_context import ListenerName, load, look_at, tls_keys
from broker.security.tls.listener_tls import ListenerTls
from broker.security.tls.transport import TlsTransport
from config.errors import ConfigError
from config.listeners.addresses import counted_address
from config.listeners.endpoints import read_listeners
from config.listeners.listener_config import for_listener

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Executor

    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers
    from broker.security.tls.listener_context import ListenerContext
    from config.broker import BrokerConfig

END_IN_SIGHT_MS = 14 * 24 * 3_600_000
"""Time before a certificate's expiry when logs begin. Fixed: it is one line at each start."""

logger = logging.getLogger(__name__)


class BrokerTls:
    """The TLS of all listeners of one broker."""

    def __init__(
        self, config: BrokerConfig, threads: Executor, timers: Timers, clock: Clock
    ) -> None:
        """`threads` do the steps of handshakes and read stores."""
        self._threads = threads
        self._timers = timers
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        limits = (config.ssl_handshake_timeout_ms, config.max_ssl_handshakes)
        self.handshakes = Handshakes(self._loop, threads, timers, limits)
        self._listeners: dict[ListenerName, ListenerTls] = {}
        self._config = config
        self._turn = asyncio.Lock()
        self._refused: dict[ListenerName, object] = {}
        """Unusable contents of a listener's files, logged once."""

    async def open(self, listener: ListenerName) -> None:
        """Read the stores of a listener. Raises ConfigError."""
        context = await self.load(self._config, listener)
        self._tell_end(listener, context)
        self._listeners[listener] = ListenerTls(context, self.handshakes)

    async def load(self, config: BrokerConfig, listener: ListenerName) -> ListenerContext:
        """Context from its stores. Raises ConfigError."""
        made: ListenerContext = await self._run(partial(load, config, listener))
        return made

    def forget(self, name: str) -> None:
        """Forget a listener that is closed; its open connections stay as they are."""
        self._listeners = {one: tls for one, tls in self._listeners.items() if one.name != name}

    def listener(self, name: str) -> ListenerTls | None:
        """TLS of one listener; None if it has none."""
        for listener, tls in self._listeners.items():
            if listener.name == name:
                return tls
        return None

    @property
    def for_links(self) -> ssl.SSLContext | None:
        """The context for connections to other brokers; None if their listener has no TLS."""
        for tls in self._listeners.values():
            if tls.context.client is not None:
                return tls.context.client
        return None

    async def connect(self, protocol: asyncio.BufferedProtocol, address: tuple[str, int]) -> None:
        """Connect to another broker, and shake hands. Raises OSError."""
        context = self.for_links
        assert context is not None
        link = _LinkHandshake(self._loop.create_future())
        host, port = address

        def wrap(incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
            return context.wrap_bio(incoming, outgoing, server_hostname=counted_address(host))

        transport = TlsTransport(protocol, wrap, self.handshakes, link)
        await self._loop.create_connection(lambda: transport, system_host(host), port)
        try:
            await link.outcome
        except BaseException:
            transport.abort()
            raise

    async def check(self, config: BrokerConfig) -> None:
        """Raises ConfigError if a listener that stays could not be as `config` says."""
        for listener, tls in self._staying(config):
            await self._run(partial(load, config, listener, tls.context))

    async def change(self, config: BrokerConfig) -> None:
        """Apply changed keys, as far as they are usable, from the next connection on."""
        self._config = config
        for listener, tls in self._staying(config):
            keys = tls_keys(for_listener(config, listener.name))
            if keys != tls_keys(tls.context.config) or await self._run(tls.context.is_outdated):
                await self._renew(listener, tls)

    def watch(
        self, spawn: Callable[[Coroutine[Any, Any, None], str], object], interval_ms: int
    ) -> None:
        """Look after the files of the stores; with a negative interval never."""
        if interval_ms >= 0:
            self._timers.every(max(interval_ms, 1), lambda: spawn(self.look(), "TLS stores"))

    async def look(self) -> None:
        """Read the stores again whose files have changed."""
        for listener, tls in tuple(self._listeners.items()):
            if await self._run(tls.context.is_outdated):
                await self._renew(listener, tls)

    def close(self) -> None:
        """Stop beginning handshakes."""
        self.handshakes.close()

    def _staying(self, config: BrokerConfig) -> list[tuple[ListenerName, ListenerTls]]:
        """Listeners that `config`, which was checked, has as well."""
        names = {endpoint.name for endpoint in read_listeners(config).bound}
        return [(one, tls) for one, tls in self._listeners.items() if one.name in names]

    async def _renew(self, listener: ListenerName, tls: ListenerTls) -> None:
        async with self._turn:
            found = await self._run(partial(look_at, self._config, listener))
            if self._refused.get(listener) == found:
                return
            try:
                made = await self._run(partial(load, self._config, listener, tls.context))
            except ConfigError as error:
                self._refused[listener] = found
                logger.warning("TLS unchanged: %s", error)
                return
            self._refused.pop(listener, None)
            tls.context = made
            self._tell_end(listener, made)
            logger.info("listener %s: TLS stores taken anew", listener.name)

    def _tell_end(self, listener: ListenerName, context: ListenerContext) -> None:
        """Warn of a certificate that clients refuse already, or soon will."""
        ends = context.certificate.not_valid_after_utc
        left_ms = ends.timestamp() * 1000 - self._clock.now_ms()
        if left_ms < END_IN_SIGHT_MS:
            what = "ends" if left_ms > 0 else "has expired"
            logger.warning(
                "listener %s: its certificate %s on %s", listener.name, what, ends.date()
            )

    async def _run(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        return await self._loop.run_in_executor(self._threads, work)


class _LinkHandshake:
    """Reports the result of the handshake to the connector."""

    def __init__(self, outcome: asyncio.Future[None]) -> None:
        self.outcome = outcome

    def secured(self, certificate: bytes | None) -> str | None:  # noqa: ARG002 - it was checked
        if not self.outcome.done():
            self.outcome.set_result(None)
        return None

    def failed(self, reason: str) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(ConnectionError(reason))

    def lost(self) -> None:
        self.failed("it has hung up instead of a TLS handshake: is TLS on at its listener?")
