"""Look-ups by key if enabled; otherwise a placeholder without cost or effect."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.delivery.deliveries import Deliveries
    from broker.key_index.endpoint import LookupEndpoint
    from broker.key_index.lookups import LookupCounts, Lookups
    from broker.maintenance.key_indexer import KeyIndexer
    from broker.requests.services import BrokerServices
    from config.broker import BrokerConfig


async def wanted_lookups(config: BrokerConfig) -> LookupEndpoint | None:
    """Bind the address of `key.index.port`, on a thread.

    Raises ListenError or ConfigError.
    """
    if config.key_index_port < 0:
        return None
    return await asyncio.to_thread(_bound, config)


def _bound(config: BrokerConfig) -> LookupEndpoint:
    from broker.http.protection import guard_of_lookups, protection_of  # noqa: PLC0415
    from broker.key_index.endpoint import LookupEndpoint  # noqa: PLC0415

    return LookupEndpoint(config, protection_of(config, guard_of_lookups(config)))


class KeyIndex:
    """The indexer, and the look-ups that are served by means of it, if any are."""

    def __init__(
        self,
        indexer: KeyIndexer,
        endpoint: LookupEndpoint | None,
        services: BrokerServices,
        deliveries: Deliveries,
    ) -> None:
        self.indexer = indexer
        self._services = services
        self._deliveries = deliveries
        self._endpoint = endpoint
        self._lookups: Lookups | None = None
        if endpoint is not None:
            from broker.key_index.lookups import Lookups  # noqa: PLC0415

            self._lookups = Lookups(services, indexer)

    @property
    def counts(self) -> LookupCounts | None:
        """Counters of look-ups; None if there are no look-ups."""
        return None if self._lookups is None else self._lookups.counts

    async def start(self) -> None:
        """Begin to index, and to answer."""
        self.indexer.start()
        if self._endpoint is not None and self._lookups is not None:
            await self._lookups.start()
            from broker.key_index.waiting_lookups import WaitingLookups  # noqa: PLC0415

            waiting = WaitingLookups(self._services, self._deliveries)
            self._endpoint.serve(self._lookups, waiting)

    async def close(self) -> None:
        """Stop answering, and end the search process."""
        if self._endpoint is not None:
            self._endpoint.close()
        if self._lookups is not None:
            await self._lookups.close()
