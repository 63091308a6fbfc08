"""Authentication at the start: a mechanism that cannot be used ends it before a port is taken."""

from __future__ import annotations

import functools
import logging
import os
from typing import TYPE_CHECKING

from broker.network.links import Nobody
from broker.requests.api_table import ROUTES
from broker.security.jaas_file import login_sections
from broker.security.sasl.credentials import Credentials
from config.errors import ConfigError
from config.precedence import unprefixed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from broker.network.authentication.sasl_listener import SaslListener
    from broker.network.links import Login
    from broker.runtime.shutdown import UndoStack
    from broker.security.sasl.mechanisms import Surroundings
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig
    from config.listeners.endpoints import Listeners

logger = logging.getLogger(__name__)

SASL = "SASL_"
"""Prefix of the names of security protocols with SASL."""


class Authentication:
    """SASL, as a broker has it.

    It is imported only for listeners that have it: JWT and HTTP take half a second of a start.
    """

    def __init__(self, machine: Machine) -> None:
        """Without any listener yet."""
        self._machine = machine
        self.listeners: dict[str, SaslListener] = {}
        """SASL listeners, by name."""
        self.credentials = Credentials()
        """Credentials of clients; their sources are set before any client is served."""
        self.links: Login = Nobody()
        """Authentication of this broker to others."""

    def listener(self, config: BrokerConfig, name: str) -> SaslListener:
        """Authentication of one listener that is not in `listeners` yet. Raises ConfigError."""
        from broker.network.authentication.sasl_listener import SaslListener  # noqa: PLC0415

        return SaslListener(config, name, self._surroundings)

    def log_in_at_others(self, config: BrokerConfig, listener: str, undo: UndoStack) -> None:
        """Have this broker log in at that listener of others. Raises ConfigError."""
        from broker.network.authentication.link_login import SaslLogin  # noqa: PLC0415
        from broker.security.sasl.client.mechanisms import client_mechanism  # noqa: PLC0415

        loop, clock = self._machine.loop, self._machine.clock
        executor = self._surroundings.threads(1, "log-ins")
        undo.push("ending log-ins", executor.shutdown)

        def on_thread(work: Callable[[], bytes]) -> asyncio.Future[bytes]:
            return loop.run_in_executor(executor, work)

        sections = self._surroundings.sections
        self.links = SaslLogin(client_mechanism(config, listener, sections, on_thread, clock))

    @functools.cached_property
    def _surroundings(self) -> Surroundings:
        from broker.security.oauth.key_sources import KeySources  # noqa: PLC0415
        from broker.security.sasl.mechanisms import Surroundings  # noqa: PLC0415

        machine = self._machine
        threads = functools.cache(machine.platform.threads)  # one pool of each name, ever
        keys = KeySources(machine.clock, machine.supervision.keep, threads)
        sections = login_sections(os.environ)
        requests = {key: route.request for key, route in ROUTES.items()}
        return Surroundings(
            machine.clock, machine.timers, self.credentials, keys, threads, sections, requests
        )


def settle_authentication(
    authentication: Authentication, config: BrokerConfig, dynamic: Iterable[str]
) -> None:
    """Apply dynamic settings to the listeners, if any concern them; an error is logged."""
    if not any(unprefixed(name).startswith("sasl.") for name in dynamic):
        return
    for name, listener in authentication.listeners.items():
        try:
            listener.settle(config)
        except ConfigError as error:
            logger.error("listener %s: dynamic SASL settings ignored: %s", name, error)  # noqa: TRY400


def open_authentication(
    config: BrokerConfig, listeners: Listeners, machine: Machine, undo: UndoStack
) -> Authentication:
    """Make it for all listeners, and for links between brokers. Raises ConfigError."""
    made = Authentication(machine)
    with_sasl = {one.name: one for one in listeners.bound if one.protocol.startswith(SASL)}
    if with_sasl:
        undo.push("ending the refresh of keys", machine.supervision.close)
    for name in with_sasl:
        made.listeners[name] = made.listener(config, name)
    if listeners.inter_broker in with_sasl:
        made.log_in_at_others(config, listeners.inter_broker, undo)
    return made
