"""Security of each listener of a broker: its TLS and its SASL, created when it is opened.

An error in it ends the start, or refuses a change of `listeners`, before any address is bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.links import LinkSecurity
from broker.network.listener_security import EndpointSecurity
from broker.startup.listeners.authentication import SASL, open_authentication

if TYPE_CHECKING:
    from broker.runtime.shutdown import UndoStack
    from broker.security.tls.broker_tls import BrokerTls
    from broker.security.tls.listener_context import ListenerName
    from broker.startup.listeners.authentication import Authentication
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig
    from config.listeners.endpoints import Endpoint, Listeners

TLS = "SSL"
"""Suffix of the names of security protocols with TLS."""


class Protections:
    """Security of all listeners, by name."""

    def __init__(self, authentication: Authentication, inter_broker: str, machine: Machine) -> None:
        """`inter_broker` names the listener for other brokers."""
        self.authentication = authentication
        self.tls: BrokerTls | None = None
        """None while no listener has it."""
        self._inter_broker = inter_broker
        self._machine = machine

    @property
    def links(self) -> LinkSecurity:
        """TLS and authentication of this broker's links to others."""
        login = self.authentication.links
        if self.tls is None or self.tls.for_links is None:
            return LinkSecurity(login)
        return LinkSecurity(login, self.tls)

    async def check(self, config: BrokerConfig, endpoint: Endpoint) -> None:
        """Raises ConfigError if a listener that is not open could not be protected."""
        if endpoint.protocol.endswith(TLS):
            await self._tls(config).load(config, self._tls_name(endpoint))
        if endpoint.protocol.startswith(SASL):
            self.authentication.listener(config, endpoint.name)

    async def open(self, config: BrokerConfig, endpoint: Endpoint) -> EndpointSecurity:
        """Protect a listener that is about to be opened. Raises ConfigError."""
        name, protocol = endpoint.name, endpoint.protocol
        below = None
        if protocol.endswith(TLS):
            tls = self._tls(config)
            if tls.listener(name) is None:
                await tls.open(self._tls_name(endpoint))
            below = tls.listener(name)
        security = EndpointSecurity(protocol, below)
        if security.has_sasl:
            sasl = self.authentication.listeners
            if name not in sasl:
                sasl[name] = self.authentication.listener(config, name)
            security.gate_of = sasl[name].gate
        return security

    def close(self, name: str) -> None:
        """Forget a listener that is closed; its open connections stay as they are."""
        self.authentication.listeners.pop(name, None)
        if self.tls is not None:
            self.tls.forget(name)

    def end_handshakes(self) -> None:
        """Stop beginning TLS handshakes."""
        if self.tls is not None:
            self.tls.close()

    def _tls(self, config: BrokerConfig) -> BrokerTls:
        if self.tls is None:
            self.tls = _begin_tls(config, self._machine)
        return self.tls

    def _tls_name(self, endpoint: Endpoint) -> ListenerName:
        from broker.security.tls.listener_context import ListenerName  # noqa: PLC0415

        has_sasl = endpoint.protocol.startswith(SASL)
        return ListenerName(endpoint.name, has_sasl, endpoint.name == self._inter_broker)


def _begin_tls(config: BrokerConfig, machine: Machine) -> BrokerTls:
    """TLS of no listener yet; the library takes a tenth of a second of a start."""
    from broker.security.tls.broker_tls import BrokerTls  # noqa: PLC0415
    from broker.security.tls.handshakes import THREADS  # noqa: PLC0415

    threads = machine.platform.threads(THREADS, "tls")
    tls = BrokerTls(config, threads, machine.timers, machine.clock)
    tls.watch(machine.supervision.spawn, config.ssl_store_check_interval_ms)
    return tls


def open_protections(
    config: BrokerConfig, listeners: Listeners, machine: Machine, undo: UndoStack
) -> Protections:
    """Security of the listeners at a start, SASL first. Raises ConfigError."""
    authentication = open_authentication(config, listeners, machine, undo)
    made = Protections(authentication, listeners.inter_broker, machine)
    undo.push("ending TLS handshakes", made.end_handshakes)
    return made
