"""The controller of one broker: runs for office, and while in office runs the cluster.

One queue, one consumer.  Watches and answers of brokers only put an event in the queue; the event
then reads what there is now, decides, stores the decision under the fence of its term, and sends
requests.  An event that is queued already is not queued twice: it will read the newest state
anyway.  A store that cannot be reached makes the event wait and try again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from controller.context import TopicPartition
from controller.election import ControllerMovedError, current_controller, elect
from controller.loading import load_brokers, load_states, load_topics
from controller.office import Office
from controller.state_machines import PartitionPhase, ReplicaPhase
from controller.store import Change, MetadataStore, NodeExistsError, StoreError, Watch
from controller.znodes import DELETE_TOPICS, FEATURE, FEATURE_DATA, TOPICS
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrResponse
from protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from controller.context import ControllerContext, Term
    from controller.ports import BrokerChannels
    from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from protocol.schema import Request, Response

RETRY_AFTER_SECONDS = 1.0
"""Pause after the store refused an event."""

TOPICS_AT_ONCE = 64
"""New topics that are brought up before clients are served again."""

logger = logging.getLogger(__name__)

Handler = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Event:
    """Something to react to. Events with equal keys are one."""

    key: tuple[str, ...]
    handle: Handler


class Controller:
    """Runs for office; in office, reacts to the store. Own it by running ``run`` in a task."""

    def __init__(
        self,
        broker_id: int,
        store: MetadataStore,
        channels: BrokerChannels,
        now_ms: Callable[[], int],
    ) -> None:
        """Take part as ``broker_id``, which must be registered in the store by then."""
        self._broker_id = broker_id
        self._store = store
        self._channels = channels
        self._now_ms = now_ms
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._queued: set[tuple[str, ...]] = set()
        self._office: Office | None = None
        self._settlements: dict[str, list[asyncio.Future[None]]] = {}
        self._ready = asyncio.Event()
        self._is_retired = False
        self.controller_id: int | None = None
        """The controller as last seen in the store."""

    @property
    def is_active(self) -> bool:
        """Whether this broker is in office, as far as it knows."""
        return self._office is not None

    @property
    def context(self) -> ControllerContext | None:
        """What the controller knows while in office; for reading only."""
        return None if self._office is None else self._office.context

    async def run(self) -> None:
        """Run for office and handle events until cancelled."""
        self._put("elect", self._run_for_office)
        while True:
            event = await self._events.get()
            self._queued.discard(event.key)
            await self._handle(event)

    async def wait_until_ready(self) -> None:
        """Return once the first election is over and, if it was won, all brokers were told."""
        await self._ready.wait()

    async def wait_until_settled(self, topic: str) -> None:
        """Return once a topic's deletion is complete, or waits for a dead broker."""
        office = self._office
        if office is None:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settlements.setdefault(topic, []).append(waiter)
        if not await self._is_deletion_open(office, topic):
            self._settle([topic])
        await waiter

    async def _is_deletion_open(self, office: Office, topic: str) -> bool:
        if topic in office.context.blocked_deletions:
            return False
        return topic in await self._store.children(DELETE_TOPICS)

    async def retire(self) -> None:
        """Leave office for good, so that another broker can take it at once."""
        self._is_retired = True
        office, self._office = self._office, None
        if office is not None:
            await office.store.resign()
        self._settle(list(self._settlements))

    async def alter_partitions(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Store in-sync sets that leaders propose; raises ApiError NOT_CONTROLLER.

        Takes its turn with everything else that the controller does.
        """
        answer: asyncio.Future[AlterPartitionResponse] = asyncio.get_running_loop().create_future()

        async def alter() -> None:
            office = self._office
            try:
                if office is None:
                    raise ApiError(ErrorCode.NOT_CONTROLLER)
                response = await office.in_sync.apply(request)
            except ApiError as error:
                answer.set_exception(error)
                return
            except BaseException:
                answer.set_exception(ApiError(ErrorCode.NOT_CONTROLLER))
                raise
            self._send(office)
            answer.set_result(response)

        self._put("in-sync replicas", alter, str(id(answer)))
        return await answer

    # Events

    def _put(self, name: str, handle: Handler, *details: str) -> None:
        self._requeue(Event((name, *details), handle))

    def _requeue(self, event: Event) -> None:
        if event.key not in self._queued:
            self._queued.add(event.key)
            self._events.put_nowait(event)

    def _watch(self, name: str, handle: Handler, *details: str) -> Watch:
        def notice(_: Change) -> None:
            self._put(name, handle, *details)

        return notice

    async def _handle(self, event: Event) -> None:
        try:
            await event.handle()
        except ControllerMovedError as error:
            logger.warning("broker %d is no longer controller: %s", self._broker_id, error)
            self._office = None
            self._put("elect", self._run_for_office)
        except StoreError as error:
            logger.error("%s must wait: %s", event.key[0], error)  # noqa: TRY400
            loop = asyncio.get_running_loop()
            for again in (event, Event(("online",), self._bring_all_online)):
                loop.call_later(RETRY_AFTER_SECONDS, self._requeue, again)
        except Exception:
            logger.exception("%s failed", event.key[0])

    async def _run_for_office(self) -> None:
        if self._is_retired:
            return
        watch = self._watch("elect", self._run_for_office)
        term = await elect(self._store, self._broker_id, self._now_ms(), watch)
        if term is None:
            await self._note_other_controller()
        elif self._office is None or self._office.context.term != term:
            await self._take_office(term)
        self._ready.set()

    async def _note_other_controller(self) -> None:
        self.controller_id = await current_controller(self._store)
        if self._office is not None and self.controller_id != self._broker_id:
            logger.info("broker %s is controller now", self.controller_id)
            self._office = None
        if self.controller_id is None:
            self._put("elect", self._run_for_office)

    async def _take_office(self, term: Term) -> None:
        logger.info("broker %d is controller, epoch %d", self._broker_id, term.epoch)
        office = Office(self._store, self._broker_id, term)
        with contextlib.suppress(NodeExistsError):
            await self._store.create(FEATURE, FEATURE_DATA)
        context = office.context
        context.live_brokers = await load_brokers(self._store, self._watch_brokers())
        topics = await self._store.children(TOPICS, self._watch_topics())
        doomed = await self._store.children(DELETE_TOPICS, self._watch_deletions())
        await load_topics(self._store, context, topics, self._watch_topic)
        await load_states(self._store, context, context.partitions())
        await office.deletion.enqueue(doomed)
        office.batch.publish(context.live_brokers, ())
        self._send(office)
        office.replicas.start()
        office.partitions.start()
        self._send(office)
        await office.partitions.bring_online()
        self._send(office)
        self._office = office
        self.controller_id = self._broker_id
        await self._advance_deletions(office)

    async def _bring_all_online(self) -> None:
        """After a failed write: give leaders to the partitions that got none."""
        office = self._office
        if office is not None:
            await office.partitions.bring_online()
            self._send(office)

    async def _on_brokers(self) -> None:
        office = self._office
        if office is None:
            return
        context = office.context
        before = context.live_brokers
        context.live_brokers = await load_brokers(self._store, self._watch_brokers())
        arrived = {
            broker_id
            for broker_id, broker in context.live_brokers.items()
            if broker_id not in before or before[broker_id].epoch != broker.epoch
        }
        office.batch.publish(context.live_brokers, ())
        if arrived:
            office.batch.publish(arrived, context.partitions())
            self._send(office)
            returning = [
                replica
                for replica in context.replicas(context.partitions())
                if replica.broker_id in arrived and replica.at.topic not in context.deleting
            ]
            office.replicas.enter(returning, ReplicaPhase.ONLINE)
            context.blocked_deletions.clear()
            await office.partitions.bring_online()
        self._send(office)
        await self._advance_deletions(office)

    async def _on_topics(self) -> None:
        office = self._office
        if office is None:
            return
        context = office.context
        names = await self._store.children(TOPICS, self._watch_topics())
        for topic in context.assignments.keys() - set(names):
            context.forget(topic)
        new = [topic for topic in names if topic not in context.assignments]
        for start in range(0, len(new), TOPICS_AT_ONCE):
            some = new[start : start + TOPICS_AT_ONCE]
            added = await load_topics(self._store, context, some, self._watch_topic)
            await self._bring_up(office, added)
            await asyncio.sleep(0)  # noqa: TID251  (gives way to clients, takes no time)

    async def _on_topic(self, topic: str) -> None:
        office = self._office
        if office is None or topic not in office.context.assignments:
            return
        added = await load_topics(self._store, office.context, [topic], self._watch_topic)
        if topic not in office.context.deleting:
            await self._bring_up(office, added)

    async def _bring_up(self, office: Office, added: list[TopicPartition]) -> None:
        await load_states(self._store, office.context, added)
        office.partitions.enter(added, PartitionPhase.NEW)
        replicas = list(office.context.replicas(added))
        office.replicas.enter(replicas, ReplicaPhase.NEW)
        await office.partitions.bring_online(added)
        office.replicas.enter(replicas, ReplicaPhase.ONLINE)
        self._send(office)

    async def _on_deletions(self) -> None:
        office = self._office
        if office is None:
            return
        names = await self._store.children(DELETE_TOPICS, self._watch_deletions())
        await office.deletion.enqueue(set(names) - office.context.deleting)
        await self._advance_deletions(office)

    async def _advance_deletions(self, office: Office) -> None:
        self._settle(await office.deletion.advance())
        self._send(office)
        self._settle(office.context.blocked_deletions)

    def _settle(self, topics: list[str] | set[str]) -> None:
        for topic in topics:
            for waiter in self._settlements.pop(topic, ()):
                if not waiter.done():
                    waiter.set_result(None)

    # Watches

    def _watch_brokers(self) -> Watch:
        return self._watch("brokers", self._on_brokers)

    def _watch_topics(self) -> Watch:
        return self._watch("topics", self._on_topics)

    def _watch_deletions(self) -> Watch:
        return self._watch("deletions", self._on_deletions)

    def _watch_topic(self, topic: str) -> Watch:
        return self._watch("topic", lambda: self._on_topic(topic), topic)

    # Requests

    def _send(self, office: Office) -> None:
        for broker_id, request in office.batch.take_requests():
            answer = self._channels.send(broker_id, request)
            answer.add_done_callback(partial(self._on_answer, broker_id, request))

    def _on_answer(
        self, broker_id: int, request: Request, answer: asyncio.Future[Response]
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
        if isinstance(response, LeaderAndIsrResponse):
            _log_refusals(broker_id, response)
        elif isinstance(response, StopReplicaResponse) and isinstance(request, StopReplicaRequest):
            self._on_replicas_stopped(broker_id, request, response)

    def _on_replicas_stopped(
        self, broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse
    ) -> None:
        deleted = {
            TopicPartition(topic.topic_name, state.partition_index)
            for topic in request.topic_states
            for state in topic.partition_states
            if state.delete_partition
        }
        if not deleted:
            return
        errors = dict.fromkeys(deleted, response.error_code)
        for error in response.partition_errors:
            at = TopicPartition(error.topic_name, error.partition_index)
            if at in errors and error.error_code:
                errors[at] = error.error_code

        async def note() -> None:
            office = self._office
            if office is not None:
                office.deletion.replicas_stopped(broker_id, errors)
                await self._advance_deletions(office)

        self._put("stopped", note, str(id(request)))


def _log_refusals(broker_id: int, response: LeaderAndIsrResponse) -> None:
    if response.error_code:
        logger.error("broker %d refused LeaderAndIsr: error %d", broker_id, response.error_code)
    for topic in response.topics:
        for error in topic.partition_errors:
            if error.error_code:
                logger.error(
                    "broker %d cannot serve partition %d of topic %s: error %d",
                    broker_id,
                    error.partition_index,
                    topic.topic_id,
                    error.error_code,
                )
