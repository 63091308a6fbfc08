"""Authentication at the start: a mechanism that cannot be used ends it before a port is taken."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
from typing import TYPE_CHECKING

from broker.network.links import Nobody
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
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig
    from config.listeners import Listeners

logger = logging.getLogger(__name__)

SASL = "SASL_"
"""How the names of security protocols with it begin."""


@dataclasses.dataclass(frozen=True, slots=True)
class Authentication:
    """SASL, as a broker has it."""

    listeners: dict[str, SaslListener] = dataclasses.field(default_factory=dict)
    """Those that have it, by name."""
    credentials: Credentials = dataclasses.field(default_factory=Credentials)
    """What clients are known by; its sources are set before anyone is served."""
    links: Login = dataclasses.field(default_factory=Nobody)
    """How this broker logs in at others."""


def settle_authentication(
    authentication: Authentication, config: BrokerConfig, dynamic: Iterable[str]
) -> None:
    """Have the listeners go by dynamic settings, if these are among them; what is wrong is told."""
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
    """Make it for all listeners, and for links between brokers. Raises ConfigError.

    Only with SASL is it imported: JWT and HTTP take half a second of a start.
    """
    with_sasl = {one.name: one for one in listeners.bound if one.protocol.startswith(SASL)}
    if not with_sasl:
        return Authentication()
    from broker.network.authentication.link_login import SaslLogin  # noqa: PLC0415
    from broker.network.authentication.sasl_listener import SaslListener  # noqa: PLC0415
    from broker.security.oauth.key_sources import KeySources  # noqa: PLC0415
    from broker.security.sasl.client.mechanisms import client_mechanism  # noqa: PLC0415
    from broker.security.sasl.mechanisms import Surroundings  # noqa: PLC0415

    sections = login_sections(os.environ)
    undo.push("ending the refresh of keys", machine.supervision.close)
    credentials = Credentials()
    threads = functools.cache(machine.platform.threads)  # one pool of each name, ever
    keys = KeySources(machine.clock, machine.supervision.keep, threads)
    surroundings = Surroundings(machine.clock, machine.timers, credentials, keys, threads, sections)
    made = {name: SaslListener(config, name, surroundings) for name in with_sasl}
    if listeners.inter_broker not in with_sasl:
        return Authentication(made, credentials)
    executor = threads(1, "log-ins")
    undo.push("ending log-ins", executor.shutdown)

    def on_thread(work: Callable[[], bytes]) -> asyncio.Future[bytes]:
        return machine.loop.run_in_executor(executor, work)

    mechanism = client_mechanism(config, listeners.inter_broker, sections, on_thread, machine.clock)
    return Authentication(made, credentials, SaslLogin(mechanism))
