"""Makes the gates of one SASL listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.authentication.gate import GateSettings, SaslGate
from broker.security.sasl.mechanisms import terms_of
from config.listeners.listener_config import for_listener

if TYPE_CHECKING:
    from broker.network.authentication.counts import AuthenticationCounts
    from broker.network.client import Client
    from broker.security.sasl.mechanisms import Surroundings
    from config.broker import BrokerConfig


class SaslListener:
    """The authentication of a listener.

    Once clients are served its settings stay as they are: Apache Kafka does not take other ones for
    a listener that is open either.
    """

    def __init__(self, config: BrokerConfig, listener: str, surroundings: Surroundings) -> None:
        """As the property file says. Raises ConfigError."""
        self._listener, self._surroundings = listener, surroundings
        self._settings = self._settings_of(config)

    def settle(self, config: BrokerConfig) -> None:
        """Apply the dynamic settings read at the start. Raises ConfigError."""
        self._settings = self._settings_of(config)

    def _settings_of(self, config: BrokerConfig) -> GateSettings:
        listener_config = for_listener(config, self._listener)
        return GateSettings(
            terms_of(config, self._listener, self._surroundings),
            self._surroundings.timers,
            listener_config.sasl_server_max_receive_size,
            listener_config.connection_failed_authentication_delay_ms,
        )

    @property
    def counts(self) -> AuthenticationCounts:
        """Authentication counts of its clients."""
        return self._settings.counts

    def gate(self, client: Client) -> SaslGate:  # noqa: ARG002
        """Of the connection of a new client."""
        return SaslGate(self._settings)
