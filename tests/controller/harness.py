"""A cluster of controllers on one memory ensemble, with brokers that only record requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from controller.brokers.registration import create_skeleton, register_broker
from controller.controller import Controller
from controller.features.levels import FEATURES
from controller.topics.topics import Chance, TopicCommands
from controller.znodes import BrokerRegistration, Endpoint
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.controller.memory_store import MemoryEnsemble, MemoryStore
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from controller.features.levels import Feature
    from controller.metadata_store.store import MetadataStore
    from protocol.schema import Request, Response

NOW_MS = 1_795_229_819_690
MAX_NEW_PARTITIONS = 2000


async def turns(count: int = 100) -> None:
    """Run the ready callbacks of the loop, and those they make ready."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        turn: asyncio.Future[None] = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


class NotingChannels:
    """Answers every request with success at once, and keeps it."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Request]] = []
        self.delete_errors: dict[str, int] = {}
        """Error to answer for deleting a topic's replicas."""
        self.lost: set[tuple[int, str]] = set()
        """Brokers, and topics whose replicas lie on a failed disk there."""
        self.delayed: tuple[type[Request], ...] = ()
        """Requests that are answered by `answer_oldest` only."""
        self._unanswered: list[tuple[int, Request, asyncio.Future[Response]]] = []

    def send(self, broker_id: int, request: Request) -> asyncio.Future[Response]:
        self.sent.append((broker_id, request))
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        if isinstance(request, self.delayed):
            self._unanswered.append((broker_id, request, answer))
        else:
            answer.set_result(self._answer(broker_id, request))
        return answer

    async def answer_oldest(self) -> Request:
        """Answer the delayed request that was sent first, and let what follows from it happen."""
        broker_id, request, answer = self._unanswered.pop(0)
        answer.set_result(self._answer(broker_id, request))
        await turns()
        return request

    def take(self) -> list[tuple[int, Request]]:
        """Return the requests sent since the last call."""
        taken, self.sent = self.sent, []
        return taken

    def _leading_error(self, broker_id: int, topic: str) -> ErrorCode:
        is_lost = (broker_id, topic) in self.lost
        return ErrorCode.KAFKA_STORAGE_ERROR if is_lost else ErrorCode.NONE

    def _answer(self, broker_id: int, request: Request) -> Response:
        if isinstance(request, LeaderAndIsrRequest):
            return LeaderAndIsrResponse(
                error_code=0,
                topics=[
                    LeaderAndIsrResponse.Topic(
                        topic_id=topic.topic_id,
                        partition_errors=[
                            LeaderAndIsrPartitionError(
                                partition_index=state.partition_index,
                                error_code=self._leading_error(broker_id, topic.topic_name),
                            )
                            for state in topic.partition_states
                        ],
                    )
                    for topic in request.topic_states
                ],
            )
        if isinstance(request, StopReplicaRequest):
            return StopReplicaResponse(
                error_code=0,
                partition_errors=[
                    StopReplicaResponse.PartitionError(
                        topic_name=topic.topic_name,
                        partition_index=state.partition_index,
                        error_code=self.delete_errors.get(topic.topic_name, 0),
                    )
                    for topic in request.topic_states
                    for state in topic.partition_states
                ],
            )
        assert isinstance(request, UpdateMetadataRequest)
        return UpdateMetadataResponse(error_code=0)


class Member:
    """A broker: a session, a controller that may be elected, channels that record requests."""

    def __init__(self, broker_id: int, store: MemoryStore) -> None:
        self.broker_id = broker_id
        self.store = store
        self.channels = NotingChannels()
        self.controller = Controller(
            broker_id, store, self.channels, lambda: NOW_MS, one_step_at_a_time
        )


class Cluster:
    """Brokers on one ensemble."""

    def __init__(self) -> None:
        self.ensemble = MemoryEnsemble()
        self.connect: Callable[[], MemoryStore] = self.ensemble.connect
        """Opens the session of a broker."""
        self.store: MetadataStore = self.ensemble.connect()
        self.members: dict[int, Member] = {}
        self.racks: dict[int, str | None] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._random = 0
        chance = Chance(lambda _: 0, self._random_bytes)
        self.topics = TopicCommands(self.store, chance, MAX_NEW_PARTITIONS, one_step_at_a_time)

    async def start(self, *broker_ids: int) -> Cluster:
        """Register brokers and let the first become controller."""
        await create_skeleton(self.store)
        for broker_id in broker_ids:
            await self.add(broker_id)
        return self

    async def add(self, broker_id: int, features: tuple[Feature, ...] = FEATURES) -> Member:
        """Start one more broker."""
        member = Member(broker_id, self.connect())
        self.members[broker_id] = member
        self.racks[broker_id] = None
        await register_broker(
            member.store,
            broker_id,
            BrokerRegistration(
                (Endpoint("PLAINTEXT", "127.0.0.1", 9092 + broker_id),), features=features
            ),
        )
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(member.controller.run()))
        await member.controller.wait_until_ready()
        await turns()
        return member

    async def kill(self, broker_id: int) -> None:
        """End a broker's session, as ZooKeeper does once it has not been heard of for long."""
        member = self.members.pop(broker_id)
        await member.store.close()
        await turns()

    async def stop(self) -> None:
        """End all controllers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _random_bytes(self, count: int) -> bytes:
        self._random += 1
        return UUID(int=self._random << 64).bytes[:count]


def run_cluster(
    scenario: Callable[[Cluster], Coroutine[None, None, None]], *broker_ids: int
) -> None:
    """Run a scenario on a cluster of these brokers; the first is controller."""

    async def main() -> None:
        cluster = await Cluster().start(*broker_ids)
        try:
            await scenario(cluster)
        finally:
            await cluster.stop()

    asyncio.run(main())
