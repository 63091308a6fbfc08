"""Sends control requests to brokers and handles their answers.

An answer may come after the controller's term, or the registration of the broker, has ended. It is
useless then, and may be wrong: the new controller, or this one after a new registration, has sent
its own requests. So an answer counts only for the term and the broker epoch of its request. Apache
Kafka's controller only checks that it is active.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from controller.brokers.control_requests import EPOCH_DURING_DELETE
from controller.context import TopicPartition
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from controller.active_controller import ActiveController
    from controller.event_queue import Handler
    from controller.ports import BrokerChannels
    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

NOT_REFUSALS = frozenset(
    {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.STALE_CONTROLLER_EPOCH}
)
"""Errors of a partition that are not logged: failed disks are logged elsewhere, and the last one
only means that the broker had the state already; Apache Kafka's return it whenever the leader epoch
is not new."""


class _Asked(NamedTuple):
    """The request of an answer: its term, and the broker with its epoch."""

    active: ActiveController
    broker_id: int
    broker_epoch: int


class Delivery:
    """The requests in flight, of all terms."""

    def __init__(
        self,
        channels: BrokerChannels,
        put: Callable[[str, Handler], None],
        current: Callable[[], ActiveController | None],
        on_stopped: Callable[[ActiveController, int, dict[TopicPartition, int]], Awaitable[None]],
        on_failed: Callable[[ActiveController, int, list[TopicPartition]], Awaitable[None]],
    ) -> None:
        """Handle answers by `put(name, handler)`, each in its turn, in the `current` term.

        `on_stopped` gets a broker, and the error codes of the partitions it was to delete.
        `on_failed` gets a broker and the partitions whose log directory has failed there.
        """
        self._channels = channels
        self._put = put
        self._current = current
        self._on_stopped = on_stopped
        self._on_failed = on_failed

    def deliver(self, active: ActiveController, broker_id: int, request: Request) -> None:
        """Send requests; failures in their answers are logged."""
        answer = self._channels.send(broker_id, request)
        answer.add_done_callback(partial(self._on_answer, active, broker_id, request))

    def _on_answer(
        self,
        active: ActiveController,
        broker_id: int,
        request: Request,
        answer: asyncio.Future[Response],
    ) -> None:
        if answer.cancelled():
            return
        failure = answer.exception()
        if failure is not None:
            logger.error(
                "broker %d did not take %s: %s", broker_id, type(request).__name__, failure
            )
            return
        response = answer.result()
        if isinstance(response, LeaderAndIsrResponse) and isinstance(request, LeaderAndIsrRequest):
            _log_refusals(broker_id, response)
            failed = _without_disk(request, response)
            if failed:
                asked = _Asked(active, broker_id, request.broker_epoch)
                self._take("failed", asked, lambda: self._on_failed(active, broker_id, failed))
        elif isinstance(response, StopReplicaResponse) and isinstance(request, StopReplicaRequest):
            errors = _deleted(request, response)
            if errors:
                asked = _Asked(active, broker_id, request.broker_epoch)
                self._take("stopped", asked, lambda: self._on_stopped(active, broker_id, errors))

    def _take(self, name: str, asked: _Asked, work: Handler) -> None:
        """Act on an answer in its turn, if it still counts."""

        async def take() -> None:
            active, broker_id, broker_epoch = asked
            if active is not self._current() or not active.has_life(broker_id, broker_epoch):
                logger.info("answer of broker %d is of an earlier term or life: ignored", broker_id)
                return
            await work()
            await active.send()

        self._put(name, take)


def _deleted(
    request: StopReplicaRequest, response: StopReplicaResponse
) -> dict[TopicPartition, int]:
    """Error codes of the partitions that were to be deleted with their topics.

    Not those of replicas that a move has left behind: nothing waits for them.
    """
    errors = {
        TopicPartition(topic.topic_name, state.partition_index): response.error_code
        for topic in request.topic_states
        for state in topic.partition_states
        if state.delete_partition and state.leader_epoch == EPOCH_DURING_DELETE
    }
    for error in response.partition_errors:
        at = TopicPartition(error.topic_name, error.partition_index)
        if at in errors and error.error_code:
            errors[at] = error.error_code
    return errors


def _without_disk(
    request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
) -> list[TopicPartition]:
    names = {topic.topic_id: topic.topic_name for topic in request.topic_states}
    return [
        TopicPartition(names[topic.topic_id], error.partition_index)
        for topic in response.topics
        for error in topic.partition_errors
        if error.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    ]


def _log_refusals(broker_id: int, response: LeaderAndIsrResponse) -> None:
    if response.error_code:
        logger.error("broker %d refused LeaderAndIsr: error %d", broker_id, response.error_code)
    for topic in response.topics:
        for error in topic.partition_errors:
            if error.error_code not in NOT_REFUSALS:
                logger.error(
                    "broker %d cannot serve partition %d of topic %s: error %d",
                    broker_id,
                    error.partition_index,
                    topic.topic_id,
                    error.error_code,
                )
