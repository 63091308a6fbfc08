"""Connections to the brokers that metadata knows, by the listener for brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.broker_link import BrokerLink, LinkLimits
from broker.network.links import UNPROTECTED
from config.listeners.endpoints import read_listeners

if TYPE_CHECKING:
    from broker.metadata.metadata_cache import MetadataCache
    from broker.network.links import Address, Link, LinkSecurity
    from config.broker import BrokerConfig

ANSWER_OVERHEAD_BYTES = 1 << 20
"""Maximum size of an answer besides the requested records, in bytes."""


class BrokerLinks:
    """`broker.network.links.Links` of one broker."""

    def __init__(
        self, config: BrokerConfig, metadata: MetadataCache, security: LinkSecurity = UNPROTECTED
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._security = security
        self._listener = read_listeners(config).inter_broker

    def link(self, broker_id: int, purpose: str) -> Link:
        """A connection of one's own; `purpose` is the client id that the other broker sees."""
        config = self._config
        return BrokerLink(
            f"broker {broker_id}",
            lambda: self._address(broker_id),
            purpose,
            LinkLimits(
                config.replica_socket_timeout_ms,
                config.replica_fetch_response_max_bytes
                + config.socket_request_max_bytes  # no batch is larger, whatever its topic allows
                + ANSWER_OVERHEAD_BYTES,
            ),
            self._security,
        )

    def _address(self, broker_id: int) -> Address | None:
        node = self._metadata.node(broker_id, self._listener)
        return None if node is None else (node.host, node.port)
