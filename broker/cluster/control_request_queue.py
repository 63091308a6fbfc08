"""Requests of the controller to this broker, over the wire or from the same process.

They are applied in order by one task. One epoch fences all kinds of them: a broker that has heard
of a new controller, by whatever request, refuses former ones. A request for many partitions
creates, or closes, many logs, so it is applied in slices.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from protocol.messages.update_metadata import UpdateMetadataRequest
from storage.errors import ExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.metadata.metadata_cache import MetadataCache
    from broker.metadata.topic_configs import TopicConfigs
    from broker.partitions.replicas import Replicas
    from broker.runtime.slices import Slices
    from broker.runtime.timers import Timers
    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

RETRY_MS = 100
"""Pause before descriptors are looked for again."""


class ControlRequestQueue:
    """`controller.ports.BrokerChannels` of one broker; run `run` in a task."""

    def __init__(self) -> None:
        self.controller_epoch = -1
        """Of the newest controller heard."""
        self._queue: asyncio.Queue[tuple[Request, asyncio.Future[Response]]] = asyncio.Queue()
        """Without a limit of its own. A remote controller has one request at a time under way here,
        as its connection waits for the answer; the local one as many as it has decided.
        """

    def send(self, broker_id: int, request: Request) -> asyncio.Future[Response]:  # noqa: ARG002
        """Queue a request; there is only this broker to send it to."""
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((request, answer))
        return answer

    async def wait_until_applied(self) -> None:
        """Return once all that was sent so far is applied."""
        await self._queue.join()

    async def run(self, applied: ControlRequests) -> None:
        """Apply requests until cancelled."""
        while True:
            request, answer = await self._queue.get()
            try:
                response = await self._apply(request, applied)
            except Exception as error:
                logger.exception("%s could not be applied", type(request).__name__)
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(response)
            finally:
                answer.cancel()  # if it was not answered, as its work was cancelled
                self._queue.task_done()
                del request, answer  # its frame may be large, and the next may be long in coming

    async def _apply(self, request: Request, applied: ControlRequests) -> Response:
        assert isinstance(request, UpdateMetadataRequest | StopReplicaRequest | LeaderAndIsrRequest)
        if request.controller_epoch < self.controller_epoch:
            return _refusal(request)
        self.controller_epoch = request.controller_epoch
        return await applied.apply(request)


class ControlRequests:
    """Their results: of this broker's replicas, and of its metadata."""

    def __init__(
        self,
        replicas: Replicas,
        metadata: MetadataCache,
        topic_configs: TopicConfigs,
        slices: Callable[[], Slices],
        timers: Timers,
    ) -> None:
        self._slices = slices
        self._timers = timers
        self._replicas = replicas
        self._metadata = metadata
        self._topic_configs = topic_configs

    async def apply(
        self, request: UpdateMetadataRequest | StopReplicaRequest | LeaderAndIsrRequest
    ) -> Response:
        """Apply a request of the valid controller; one at a time."""
        if isinstance(request, UpdateMetadataRequest):
            return self._metadata.update(request)
        if isinstance(request, StopReplicaRequest):
            return await self._stop_replicas(request)
        return await self._lead_or_follow(request)

    async def _lead_or_follow(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        new = {topic.topic_name for topic in request.topic_states} - self._replicas.by_topic.keys()
        await self._topic_configs.load(new)
        response = LeaderAndIsrResponse(error_code=ErrorCode.NONE)
        slices = self._slices()
        for topic in request.topic_states:
            told = LeaderAndIsrResponse.Topic(topic_id=topic.topic_id, partition_errors=[])
            response.topics.append(told)
            async for state in slices.each(topic.partition_states):
                lead_or_follow = partial(
                    self._replicas.lead_or_follow, topic.topic_name, topic.topic_id, state
                )
                code = await self._obey(topic.topic_name, state.partition_index, lead_or_follow)
                told.partition_errors.append(
                    LeaderAndIsrPartitionError(
                        topic_name=topic.topic_name,
                        partition_index=state.partition_index,
                        error_code=code,
                    )
                )
        return response

    async def _stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        response = StopReplicaResponse(error_code=ErrorCode.NONE, partition_errors=[])
        slices = self._slices()
        for topic in request.topic_states:
            async for state in slices.each(topic.partition_states):
                stop = partial(self._replicas.stop, topic.topic_name, state)
                response.partition_errors.append(
                    StopReplicaResponse.PartitionError(
                        topic_name=topic.topic_name,
                        partition_index=state.partition_index,
                        error_code=await self._obey(topic.topic_name, state.partition_index, stop),
                    )
                )
        if any(
            state.delete_partition
            for topic in request.topic_states
            for state in topic.partition_states
        ):
            await self._replicas.forget_deleted()  # before the next request makes one of the name
        return response

    async def _obey(self, topic: str, index: int, work: Callable[[], ErrorCode]) -> ErrorCode:
        """Apply a request to one partition; an error there does not stop the others.

        A lack of file descriptors is waited out: the controller takes KAFKA_STORAGE_ERROR for a
        failed disk, and counts the replica as lost until the broker starts again. However long that
        takes, no other control request is applied meanwhile, as they must not overtake.
        """
        is_waiting = False
        while True:
            try:
                return work()
            except ExhaustedError as error:
                if not is_waiting:
                    is_waiting = True
                    logger.warning("%s-%d waits: %s", topic, index, error.message)
                await self._timers.sleep(RETRY_MS)
            except Exception:
                logger.exception("%s-%d is not as the controller wants it", topic, index)
                return ErrorCode.UNKNOWN_SERVER_ERROR


def _refusal(
    request: UpdateMetadataRequest | StopReplicaRequest | LeaderAndIsrRequest,
) -> Response:
    code = ErrorCode.STALE_CONTROLLER_EPOCH
    if isinstance(request, StopReplicaRequest):
        return StopReplicaResponse(error_code=code, partition_errors=[])
    return request.RESPONSE(error_code=code)
