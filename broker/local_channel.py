"""What the controller says to this broker, from over the wire or from the same process.

Requests are applied in order by one task. One epoch fences all kinds of them: who has heard a new
controller, by whatever request, obeys no former one. A LeaderAndIsr for many partitions creates
many logs, so it is applied piece by piece, and the event loop serves clients in between.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from protocol.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.metadata_cache import MetadataCache
    from broker.replicas import Replicas
    from broker.topic_configs import TopicConfigs
    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

PARTITIONS_AT_ONCE = 4
"""How many partitions are created or changed before clients are served again.

Each may be three new files and a directory, which takes a slow disk two milliseconds.
"""


class LocalChannels:
    """`controller.ports.BrokerChannels` of one broker; run `run` in a task."""

    def __init__(
        self, replicas: Replicas, metadata: MetadataCache, topic_configs: TopicConfigs
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._topic_configs = topic_configs
        self.controller_epoch = -1
        """Of the newest controller heard."""
        self._queue: asyncio.Queue[tuple[Request, asyncio.Future[Response]]] = asyncio.Queue()

    def send(self, broker_id: int, request: Request) -> asyncio.Future[Response]:  # noqa: ARG002
        """Queue a request; there is only this broker to send it to."""
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((request, answer))
        return answer

    async def wait_until_applied(self) -> None:
        """Return once all that was sent so far is applied."""
        await self._queue.join()

    async def run(self) -> None:
        """Apply requests until cancelled."""
        while True:
            request, answer = await self._queue.get()
            try:
                response = await self._apply(request)
            except Exception as error:
                logger.exception("%s could not be applied", type(request).__name__)
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(response)
            finally:
                self._queue.task_done()

    async def _apply(self, request: Request) -> Response:
        assert isinstance(request, UpdateMetadataRequest | StopReplicaRequest | LeaderAndIsrRequest)
        if request.controller_epoch < self.controller_epoch:
            return _refusal(request)
        self.controller_epoch = request.controller_epoch
        if isinstance(request, UpdateMetadataRequest):
            return self._metadata.update(request)
        if isinstance(request, StopReplicaRequest):
            return self._replicas.stop_replicas(request)
        return await self._apply_leaders(request)

    async def _apply_leaders(self, request: LeaderAndIsrRequest) -> Response:
        new = {topic.topic_name for topic in request.topic_states} - self._replicas.by_topic.keys()
        await self._topic_configs.load(new)
        whole = LeaderAndIsrResponse(error_code=ErrorCode.NONE)
        for piece in _pieces(request):
            response = self._replicas.become_leader_or_follower(piece)
            whole.error_code = whole.error_code or response.error_code
            _add_errors(whole, response.topics)
            await asyncio.sleep(0)  # noqa: TID251  (gives way to others, takes no time)
        return whole


def _refusal(
    request: UpdateMetadataRequest | StopReplicaRequest | LeaderAndIsrRequest,
) -> Response:
    code = ErrorCode.STALE_CONTROLLER_EPOCH
    if isinstance(request, StopReplicaRequest):
        return StopReplicaResponse(error_code=code, partition_errors=[])
    return request.RESPONSE(error_code=code)


def _add_errors(whole: LeaderAndIsrResponse, topics: list[LeaderAndIsrResponse.Topic]) -> None:
    """Name each topic once, in however many pieces it was applied."""
    for topic in topics:
        if whole.topics and whole.topics[-1].topic_id == topic.topic_id:
            whole.topics[-1].partition_errors.extend(topic.partition_errors)
        else:
            whole.topics.append(topic)


def _pieces(request: LeaderAndIsrRequest) -> Iterator[LeaderAndIsrRequest]:
    """The same request in parts of at most `PARTITIONS_AT_ONCE` partitions."""
    for topic in request.topic_states:
        states = topic.partition_states
        for start in range(0, len(states), PARTITIONS_AT_ONCE):
            yield LeaderAndIsrRequest(
                controller_id=request.controller_id,
                controller_epoch=request.controller_epoch,
                broker_epoch=request.broker_epoch,
                type=request.type,
                topic_states=[
                    LeaderAndIsrRequest.TopicState(
                        topic_name=topic.topic_name,
                        topic_id=topic.topic_id,
                        partition_states=states[start : start + PARTITIONS_AT_ONCE],
                    )
                ],
                live_leaders=request.live_leaders,
            )
