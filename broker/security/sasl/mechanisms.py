"""The mechanisms of a listener, as it is configured."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.security.kerberos.configured import gssapi
from broker.security.kerberos.mechanism import GSSAPI
from broker.security.oauth.configured import oauthbearer
from broker.security.oauth.mechanism import OAUTHBEARER
from broker.security.sasl.conversation import Terms
from broker.security.sasl.login_modules import login_modules
from broker.security.sasl.plain import PLAIN, PlainMechanism
from broker.security.sasl.scram import Scram
from config.errors import ConfigError
from config.listeners.jaas import PLAIN_MODULE
from config.listeners.listener_config import for_listener
from protocol.scram_types import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers
    from broker.security.oauth.key_sources import KeySources
    from broker.security.sasl.credentials import Credentials
    from broker.security.sasl.login_modules import LoginModules, Sections
    from broker.security.sasl.mechanism import Mechanism
    from config.broker import BrokerConfig
    from protocol.schema import Request


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Parts of the broker that mechanisms use."""

    clock: Clock
    timers: Timers
    credentials: Credentials
    keys: KeySources
    """Of identity providers."""
    threads: Callable[[int, str], Executor]
    """Makes a pool of threads."""
    sections: Sections = field(default_factory=dict)
    """Of the JAAS file."""
    requests: Mapping[int, type[Request]] = field(default_factory=dict)
    """`Terms.requests`."""


@dataclass(frozen=True, slots=True)
class MechanismSettings:
    """One mechanism of one listener, as it is configured."""

    name: str
    config: BrokerConfig
    """As the listener has it for this mechanism."""
    logins: LoginModules
    surroundings: Surroundings

    def options_of(self, class_name: str) -> dict[str, str]:
        """The options of its login modules of that class."""
        return self.logins.options_of(class_name)


def _plain(settings: MechanismSettings) -> Mechanism:
    return PlainMechanism(settings.options_of(PLAIN_MODULE))


def _scram(settings: MechanismSettings) -> Mechanism:
    credentials = settings.surroundings.credentials
    return Scram(BY_NAME[settings.name], credentials, secrets.randbits)


MECHANISMS: dict[str, Callable[[MechanismSettings], Mechanism]] = {
    PLAIN: _plain,
    **dict.fromkeys(BY_NAME, _scram),
    OAUTHBEARER: oauthbearer,
    GSSAPI: gssapi,
}
"""Constructor of each mechanism. Raises ConfigError."""


def terms_of(config: BrokerConfig, listener: str, surroundings: Surroundings) -> Terms:
    """A listener's terms of authentication. Raises ConfigError."""
    listener_config = for_listener(config, listener)
    names = tuple(dict.fromkeys(listener_config.sasl_enabled_mechanisms))
    if not names:
        key = "sasl.enabled.mechanisms"
        raise ConfigError(f"No SASL mechanisms are enabled for listener {listener} ({key})", key)
    made: dict[str, Mechanism] = {}
    max_reauth_ms: dict[str, int] = {}
    for name in names:
        settings = _settings_of(config, listener, name, surroundings)
        made[name] = MECHANISMS[name](settings)
        max_reauth_ms[name] = settings.config.connections_max_reauth_ms
    return Terms(made, max_reauth_ms, surroundings.clock, surroundings.requests)


def _settings_of(
    config: BrokerConfig, listener: str, name: str, surroundings: Surroundings
) -> MechanismSettings:
    if name not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        why = f"SASL mechanism {name} of listener {listener} is none of: {known}"
        raise ConfigError(why, "sasl.enabled.mechanisms")
    logins = login_modules(config, listener, name, surroundings.sections)
    return MechanismSettings(name, for_listener(config, listener, name), logins, surroundings)
