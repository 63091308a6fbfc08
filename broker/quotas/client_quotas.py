"""All quotas of a broker: limits and usage.

Limits come as configurations of users, client ids and addresses, at the start and with each change.
While none is set, a request only looks at `is_enabled`.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from broker.quotas.connection_rates import ConnectionRates
from broker.quotas.meters import Meters
from broker.quotas.quota_keys import ADDRESS_KEYS, CLIENT_KEYS, QuotaKey
from broker.quotas.sampled_rate import SampledRate, client_span, controller_span
from broker.quotas.token_bucket import TokenBucket
from broker.runtime.addresses.host_names import address_of, is_address
from config.listeners.addresses import counted_address
from controller.security.config_entities import ConfigEntity, Default, parse_entity

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from config.broker import BrokerConfig

logger = logging.getLogger(__name__)


class ClientQuotas:
    """The quotas that hold at one broker."""

    def __init__(
        self, config: BrokerConfig, spawn: Callable[[Coroutine[Any, Any, None], str], object]
    ) -> None:
        """`spawn(coroutine, name)` runs a look-up of a host in the background."""
        most = config.quota_max_tracked_clients
        span, mutation_span = client_span(config), controller_span(config)
        self._spawn = spawn
        self._addresses: dict[str, str] = {}
        """Of hosts with a limit, as they were when it was set."""
        self.produce = Meters(lambda: SampledRate(span), most)
        self.fetch = Meters(lambda: SampledRate(span), most)
        self.request = Meters(lambda: SampledRate(span), most)
        """In per cent of one processor."""
        self.mutation = Meters(lambda: TokenBucket(mutation_span), most)
        self.connections = ConnectionRates(span, most)
        self.span = span
        self.is_enabled = False
        """True if any limit on requests is set."""
        self.entities: dict[ConfigEntity, Mapping[str, float]] = {}
        """All that is set, as DescribeClientQuotas shows it."""

    @property
    def by_key(self) -> dict[str, Meters[SampledRate] | Meters[TokenBucket]]:
        """Quotas on requests by the name of their key."""
        return {
            QuotaKey.PRODUCER_BYTE_RATE: self.produce,
            QuotaKey.CONSUMER_BYTE_RATE: self.fetch,
            QuotaKey.REQUEST_PERCENTAGE: self.request,
            QuotaKey.CONTROLLER_MUTATION_RATE: self.mutation,
        }

    async def changed(self, entity_type: str, entity: str, values: Mapping[str, str]) -> None:
        """Apply the configuration of an entity of any type (`DynamicConfigs.on_change`)."""
        parsed = parse_entity(entity_type, entity)
        if parsed is None:
            return
        keys = CLIENT_KEYS if parsed.ip is None else ADDRESS_KEYS
        found = {str(key): _limit(parsed, key, values) for key in keys}
        limits = {key: limit for key, limit in found.items() if limit is not None}
        if limits == self.entities.get(parsed, {}):
            return
        logger.info("quotas of %s %s: %s", entity_type, entity, limits or "none")
        if limits:
            self.entities[parsed] = limits
        else:
            del self.entities[parsed]
        if parsed.ip is None:
            self._limit_client(parsed, limits)
        else:
            self._limit_address(parsed.ip)

    def _limit_client(self, entity: ConfigEntity, limits: Mapping[str, float]) -> None:
        for key, meters in self.by_key.items():
            limit = limits.get(key)
            if limit is not None and not 0 < limit < math.inf:
                # Apache Kafka 3.9 divides by a 0 and finds no time to wait.
                logger.warning("quota without effect: %s of %s is %s", key, entity, limit)
                limit = None
            meters.set(entity, limit)
        self.is_enabled = any(meters.is_enabled for meters in self.by_key.values())

    def _limit_address(self, host: str | Default) -> None:
        if isinstance(host, Default):
            self.connections.set(None, self._connection_rate(host))
        elif is_address(host):
            self.connections.set(counted_address(host), self._connection_rate(host))
        elif host in self._addresses:
            self.connections.set(self._addresses[host], self._connection_rate(host))
            if self._connection_rate(host) is None:
                del self._addresses[host]
        else:
            # Not here: a name server may take half a minute, and other changes wait.
            self._spawn(self._limit_host(host), f"quota of {host}")

    async def _limit_host(self, host: str) -> None:
        address = await address_of(host)
        limit = self._connection_rate(host)
        if limit is None:
            return
        if address is None:
            logger.error("quota without effect: no address is known for %s", host)
            return
        self._addresses[host] = address
        self.connections.set(address, limit)

    def _connection_rate(self, host: str | Default) -> float | None:
        """Connection rate limit of an address now."""
        limits = self.entities.get(ConfigEntity(ip=host), {})
        return limits.get(QuotaKey.CONNECTION_CREATION_RATE)


def _limit(entity: ConfigEntity, key: str, values: Mapping[str, str]) -> float | None:
    text = values.get(key)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        logger.error("quota ignored: %s of %s is %r", key, entity, text)  # noqa: TRY400
        return None
