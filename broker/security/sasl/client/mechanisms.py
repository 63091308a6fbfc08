"""The mechanism by which this broker logs in at others, as it is configured.

As with Apache Kafka, name and password stand in the login module of the listener for brokers::

    sasl.mechanism.inter.broker.protocol=PLAIN
    listener.name.internal.plain.sasl.jaas.config=…PlainLoginModule required \
        username="broker" password="…" user_broker="…" user_alice="…";
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.security.oauth.client import OauthBearerClient
from broker.security.oauth.mechanism import OAUTHBEARER
from broker.security.oauth.refresh_times import refresh_times
from broker.security.oauth.retrieval import token_source
from broker.security.sasl.client.mechanism import Login
from broker.security.sasl.client.plain import PlainClient
from broker.security.sasl.client.scram import ScramClient
from broker.security.sasl.login_modules import login_modules
from broker.security.sasl.plain import PLAIN
from config.errors import ConfigError
from config.listeners.jaas import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE
from config.listeners.listener_config import for_listener
from protocol.scram_types import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.runtime.clock import Clock
    from broker.security.sasl.client.mechanism import ClientMechanism
    from broker.security.sasl.client.scram import OnThread
    from broker.security.sasl.login_modules import LoginModules, Sections
    from config.broker import BrokerConfig

KEY = "sasl.mechanism.inter.broker.protocol"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The mechanism between brokers, as it is configured."""

    name: str
    config: BrokerConfig
    """As the listener for brokers has it for this mechanism."""
    logins: LoginModules
    on_thread: OnThread
    """Computes what takes longer."""
    clock: Clock

    def login(self, class_name: str) -> Login:
        """Name and password in the login modules of that class. Raises ConfigError."""
        options = self.logins.options_of(class_name)
        for needed in ("username", "password"):
            if needed not in options:
                where = self.logins.where
                raise ConfigError(f"{where}: no {needed} for {self.name} between brokers", where)
        is_token = options.get("tokenauth", "").lower() == "true"
        return Login(options["username"], options["password"], is_token)


def _plain(settings: ClientSettings) -> ClientMechanism:
    return PlainClient(settings.login(PLAIN_MODULE))


def _oauthbearer(settings: ClientSettings) -> ClientMechanism:
    config, clock = settings.config, settings.clock
    source = token_source(config, settings.logins.options_of(OAUTHBEARER_MODULE), clock)

    async def retrieve() -> str:
        return (await settings.on_thread(source.retrieve)).decode(errors="replace")

    times = refresh_times(config, secrets.SystemRandom().random)
    return OauthBearerClient(retrieve, source.extensions, times, clock)


def _scram(settings: ClientSettings) -> ClientMechanism:
    login = settings.login(SCRAM_MODULE)
    return ScramClient(BY_NAME[settings.name], login, secrets.randbits, settings.on_thread)


MECHANISMS: dict[str, Callable[[ClientSettings], ClientMechanism]] = {
    PLAIN: _plain,
    **dict.fromkeys(BY_NAME, _scram),
    OAUTHBEARER: _oauthbearer,
}
"""Constructor of each mechanism. Raises ConfigError."""


def client_mechanism(
    config: BrokerConfig, listener: str, sections: Sections, on_thread: OnThread, clock: Clock
) -> ClientMechanism:
    """The one for links to `listener` of other brokers. Raises ConfigError."""
    name = config.sasl_mechanism_inter_broker_protocol
    listener_config = for_listener(config, listener)
    if name not in listener_config.sasl_enabled_mechanisms:
        what = "sasl.enabled.mechanisms when SASL is used for inter-broker communication"
        raise ConfigError(f"{KEY} must be included in {what}", KEY)
    if name not in MECHANISMS:
        raise ConfigError(f"{KEY}={name} is none of: {', '.join(MECHANISMS)}", KEY)
    logins = login_modules(config, listener, name, sections)
    return MECHANISMS[name](
        ClientSettings(name, for_listener(config, listener, name), logins, on_thread, clock)
    )
