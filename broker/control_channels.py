"""The controller's line to each broker: requests in order, one at a time, until they are answered.

A broker that does not answer holds up nobody else. When it is gone from the cluster, what waits for
it is dropped: if it comes back, the controller tells it everything anew.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.replication.links import LinkError
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.replication.links import Link
    from broker.timers import Timers
    from controller.ports import BrokerChannels
    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

RETRY_AFTER_MS = 100

VERSIONS: dict[type[Request], int] = {
    LeaderAndIsrRequest: 7,
    StopReplicaRequest: 4,
    UpdateMetadataRequest: 8,
}
"""What Apache Kafka 3.9 uses in ZooKeeper mode."""


class ControlChannels:
    """`controller.ports.BrokerChannels` of a cluster."""

    def __init__(
        self,
        local: tuple[int, BrokerChannels],
        connect: Callable[[int], Link],
        is_alive: Callable[[int], bool],
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[object]],
    ) -> None:
        """`local` is this broker's id and its channel; `is_alive` is what the controller knows."""
        self._local_id, self._local = local
        self._connect = connect
        self._is_alive = is_alive
        self._timers = timers
        self._spawn = spawn
        self._lines: dict[int, _Line] = {}

    def send(self, broker_id: int, request: Request) -> asyncio.Future[Response]:
        """Queue a request for a broker."""
        if broker_id == self._local_id:
            return self._local.send(broker_id, request)
        line = self._lines.get(broker_id)
        if line is None:
            line = self._lines[broker_id] = _Line(asyncio.Queue(), self._connect(broker_id))
            self._spawn(self._run(broker_id, line), f"control requests to broker {broker_id}")
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        line.queue.put_nowait((request, answer))
        return answer

    async def _run(self, broker_id: int, line: _Line) -> None:
        try:
            while True:
                request, answer = await line.queue.get()
                response = await self._send(broker_id, line.link, request)
                if response is None:
                    answer.cancel()
                    return
                if not answer.done():
                    answer.set_result(response)
        finally:
            if self._lines.get(broker_id) is line:
                del self._lines[broker_id]
            line.link.close()
            while not line.queue.empty():
                line.queue.get_nowait()[1].cancel()

    async def _send(self, broker_id: int, link: Link, request: Request) -> Response | None:
        """Send until it is answered; None when the broker is gone."""
        failure = ""
        while self._is_alive(broker_id):
            try:
                return await link.ask(request, VERSIONS[type(request)])
            except LinkError as error:
                if str(error) != failure:
                    failure = str(error)
                    logger.warning("%s is sent again: %s", type(request).__name__, error)
            await self._timers.sleep(RETRY_AFTER_MS)
        logger.info("broker %d is gone; %s is not sent", broker_id, type(request).__name__)
        return None


class _Line(NamedTuple):
    queue: asyncio.Queue[tuple[Request, asyncio.Future[Response]]]
    link: Link
