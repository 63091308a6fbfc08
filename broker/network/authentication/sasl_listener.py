"""Makes the gates of one SASL listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.authentication.gate import GateSettings, SaslGate
from broker.security.sasl.mechanisms import terms_of
from config.listener_config import for_listener

if TYPE_CHECKING:
    from broker.network.client import Client
    from broker.security.sasl.mechanisms import Surroundings
    from config.broker import BrokerConfig


class SaslListener:
    """The authentication of a listener.

    Its settings stay as they were at the start: Apache Kafka does not take other ones for a
    listener that is open either.
    """

    def __init__(self, config: BrokerConfig, listener: str, surroundings: Surroundings) -> None:
        """Raises ConfigError."""
        listener_config = for_listener(config, listener)
        self._settings = GateSettings(
            terms_of(config, listener, surroundings),
            surroundings.timers,
            listener_config.sasl_server_max_receive_size,
            listener_config.connection_failed_authentication_delay_ms,
        )

    def gate(self, client: Client) -> SaslGate:  # noqa: ARG002
        """Of the connection of a new client."""
        return SaslGate(self._settings)
