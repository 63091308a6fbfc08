"""The controller's line to each broker: requests in order, one at a time, until they are answered.

A broker that does not answer does not delay others. When it leaves the cluster, requests that wait
for it are dropped: if it comes back, the controller sends it the full state. No other reason drops
a request, which the controller sends once: after an unforeseen error it is sent again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.cluster.broker_links import ANSWER_OVERHEAD_BYTES
from broker.network.broker_link import BrokerLink, LinkLimits
from broker.network.links import LinkError
from config.listeners.endpoints import read_listeners
from controller.controller import Controller
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.links import Address, Link, LinkSecurity
    from broker.runtime.event_loop import BackgroundLoop
    from broker.runtime.supervision import Supervision
    from config.broker import BrokerConfig
    from controller.context import ControllerContext
    from controller.metadata_store.store import MetadataStore
    from controller.ports import BrokerChannels
    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

RETRY_AFTER_MS = 100

VERSIONS: dict[type[Request], int] = {
    LeaderAndIsrRequest: 7,
    StopReplicaRequest: 4,
    UpdateMetadataRequest: 8,
}
"""Versions of Apache Kafka 3.9 in ZooKeeper mode."""


class ControlChannels:
    """`controller.ports.BrokerChannels` of a cluster."""

    def __init__(
        self,
        local: tuple[int, BrokerChannels],
        connect: Callable[[int], Link],
        is_alive: Callable[[int], bool],
        supervision: Supervision,
    ) -> None:
        """`local` is this broker's id and channel; `is_alive` is the controller's view."""
        self._local_id, self._local = local
        self._connect = connect
        self._is_alive = is_alive
        self._supervision = supervision
        self._lines: dict[int, _Line] = {}

    def send(self, broker_id: int, request: Request) -> asyncio.Future[Response]:
        """Queue a request for a broker."""
        if broker_id == self._local_id:
            return self._local.send(broker_id, request)
        line = self._lines.get(broker_id)
        if line is None:
            line = self._lines[broker_id] = _Line(asyncio.Queue(), self._connect(broker_id))
            name = f"control requests to broker {broker_id}"
            self._supervision.spawn(self._serve(name, broker_id, line), name)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        line.queue.put_nowait((request, answer))
        return answer

    async def _serve(self, name: str, broker_id: int, line: _Line) -> None:
        """Send until the broker is gone, or this one stops."""
        try:
            await self._supervision.persist(name, partial(self._run, broker_id, line))
        finally:
            if self._lines.get(broker_id) is line:
                del self._lines[broker_id]
            line.link.close()
            if line.under_way is not None:
                line.under_way[1].cancel()
            while not line.queue.empty():
                line.queue.get_nowait()[1].cancel()

    async def _run(self, broker_id: int, line: _Line) -> None:
        """Return when the broker is gone; called again after an error, with the same request."""
        while True:
            if line.under_way is None:
                line.under_way = await line.queue.get()
            request, answer = line.under_way
            response = await self._send(broker_id, line.link, request)
            if response is None:
                return
            line.under_way = None
            if not answer.done():
                answer.set_result(response)

    async def _send(self, broker_id: int, link: Link, request: Request) -> Response | None:
        """Send until it is answered; None when the broker is gone."""
        name, failures = type(request).__name__, 0
        while self._is_alive(broker_id):
            try:
                response = await link.ask(request, VERSIONS[type(request)])
            except LinkError as error:
                if not failures:  # once, as reasons may alternate at each attempt
                    logger.warning("%s to broker %d failed, retrying: %s", name, broker_id, error)
                failures += 1
            else:
                if failures:
                    told = "%s to broker %d is answered after %d failures"
                    logger.info(told, name, broker_id, failures)
                return response
            await self._supervision.timers.sleep(RETRY_AFTER_MS)
        logger.info("%s to broker %d dropped: it has left", name, broker_id)
        return None


class Ways(NamedTuple):
    """To the brokers."""

    local: BrokerChannels
    """To this one."""
    security: LinkSecurity
    """TLS and authentication of its connections to the others."""


def controller_with_channels(
    config: BrokerConfig,
    store: MetadataStore,
    ways: Ways,
    loop: BackgroundLoop,
    supervision: Supervision,
) -> Controller:
    """The controller of this broker, with lines to all."""
    listener = read_listeners(config).inter_broker

    def known() -> ControllerContext | None:
        return controller.context  # only it sends, so it exists by now

    def is_alive(broker_id: int) -> bool:
        context = known()
        return context is not None and broker_id in context.live_brokers

    def connect(broker_id: int) -> Link:
        return BrokerLink(
            f"broker {broker_id}",
            lambda: _address(known(), broker_id, listener),
            f"broker-{config.broker_id}-controller",
            LinkLimits(config.controller_socket_timeout_ms, ANSWER_OVERHEAD_BYTES),
            ways.security,
        )

    channels = ControlChannels((config.broker_id, ways.local), connect, is_alive, supervision)
    controller = Controller(config.broker_id, store, channels, loop.clock.now_ms, loop.slices)
    return controller


def _address(context: ControllerContext | None, broker_id: int, listener: str) -> Address | None:
    """As it is registered: the controller knows a broker before the metadata cache does."""
    broker = None if context is None else context.live_brokers.get(broker_id)
    if broker is None:
        return None
    for endpoint in broker.registration.endpoints:
        if endpoint.listener == listener:
            return endpoint.host, endpoint.port
    return None


@dataclass(slots=True)
class _Line:
    queue: asyncio.Queue[tuple[Request, asyncio.Future[Response]]]
    link: Link
    under_way: tuple[Request, asyncio.Future[Response]] | None = None
    """Request taken from the queue and not answered yet."""
