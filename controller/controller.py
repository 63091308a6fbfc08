"""The controller of one broker: runs for election and, while active, manages the cluster.

One queue, one consumer. Watches and answers of brokers only queue an event; the event then reads
the present state, decides, stores the decision under the fence of its term, and sends requests.
While the store is unavailable an event is retried after a pause; a command fails instead, so that
nothing is done after its caller had an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, TypeVar

from controller.active_controller import ActiveController, UncleanDefault
from controller.brokers import broker_changes
from controller.brokers.delivery import Delivery
from controller.brokers.election import ControllerMovedError, current_controller, elect
from controller.brokers.registered_brokers import RegisteredBrokers
from controller.cluster_state import load_states, load_topics
from controller.commands import ControllerCommands, give
from controller.context import ControllerContext
from controller.event_queue import Event, EventQueue, log_failure
from controller.features.feature_znode import encode_levels
from controller.metadata_store.store import NodeExistsError, StoreError
from controller.partitions.replica_failures import replicas_failed
from controller.partitions.states import PartitionPhase, ReplicaPhase
from controller.topics.deletion_waits import DeletionWaits
from controller.znode_notifications import ZnodeNotifications
from controller.znodes import DELETE_TOPICS, FEATURE, TOPICS
from protocol.errors import ApiError, ErrorCode, detached

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from controller.context import Term, TopicPartition
    from controller.event_queue import Handler
    from controller.metadata_store.store import Change, MetadataStore, Watch
    from controller.ports import BrokerChannels, Slices

RETRY_AFTER_SECONDS = 1.0
"""Pause after the store refused an event."""

TOPICS_AT_ONCE = 64
"""Number of new topics whose stored state is read in one flight."""

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Controller:
    """Runs for election; once elected, reacts to the store. Its owner keeps a task of `run`."""

    def __init__(
        self,
        broker_id: int,
        store: MetadataStore,
        channels: BrokerChannels,
        now_ms: Callable[[], int],
        slices: Callable[[], Slices],
    ) -> None:
        """Run as `broker_id`, which has to be registered in the store."""
        self._unclean = UncleanDefault(is_allowed=False)
        self._slices = slices
        self._broker_id = broker_id
        self._store = store
        self._now_ms = now_ms
        self._events = EventQueue()
        put = self._events.put_single
        self._delivery = Delivery(
            channels, put, lambda: self._active, self._on_replicas_stopped, replicas_failed
        )
        self._brokers = RegisteredBrokers(store, lambda: self._put("brokers", self._on_brokers))
        self._active: ActiveController | None = None
        self._incoming: ActiveController | None = None
        """The term about to begin: requests to its brokers are sent already."""
        self._announcements = ZnodeNotifications(store, self._watch, lambda: self._active)
        self._settlements = DeletionWaits(slices)
        self._ready = asyncio.Event()
        self._is_retired = False
        self.commands = ControllerCommands(self.perform, store)
        self.controller_id: int | None = None
        """The controller as last seen in the store."""
        self.before_election: Handler = _do_nothing
        """Registers this broker, which has to be registered to become controller."""
        self.on_failure: Callable[[str, BaseException], None] = log_failure
        """Receives unexpected errors."""

    @property
    def is_active(self) -> bool:
        """True if this broker is the controller, as far as it knows."""
        return self._active is not None

    @property
    def context(self) -> ControllerContext | None:
        """The context of the term, while there is one; for reading only."""
        active = self._active or self._incoming
        return None if active is None else active.context

    async def run(self) -> None:
        """Run for election and handle events until cancelled."""
        self._put("elect", self._stand_for_election)
        while True:
            await self._handle(await self._events.take())

    async def wait_until_ready(self) -> None:
        """Return once the first election is over and, if won, requests to all brokers are sent."""
        await self._ready.wait()

    async def wait_until_settled(self, topics: Collection[str]) -> None:
        """Wait until the deletion of each topic is complete, or blocked by a dead broker.

        Also returns if this broker is no longer the controller. Raises StoreError.
        """
        active = self._active
        if active is None:
            return

        async def still_open() -> set[str]:
            deleting = set(await self._store.children(DELETE_TOPICS))
            return deleting - active.context.blocked_deletions if self._active is active else set()

        await self._settlements.wait(topics, still_open)

    async def retire(self) -> None:
        """Resign for good, so that another broker can be elected at once."""
        self._is_retired = True
        active = self._active
        self._resign()
        if active is not None:
            await active.store.resign()

    def require_broker(self, broker_id: int, broker_epoch: int) -> None:
        """Raises ApiError NOT_CONTROLLER, or STALE_BROKER_EPOCH for an earlier registration."""
        if self._active is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        self._active.require_broker(broker_id, broker_epoch)

    def allow_unclean(self, *, by_default: bool | None = None) -> None:
        """Note that unclean leader election was enabled or disabled, by default or for a topic."""
        if by_default is None or (by_default and not self._unclean.is_allowed):
            self._put("online", self._bring_all_online)
        self._unclean.is_allowed = self._unclean.is_allowed if by_default is None else by_default

    async def perform(self, name: str, work: Callable[[ActiveController], Awaitable[T]]) -> T:
        """Run work in the active controller, in its turn. Raises ApiError NOT_CONTROLLER."""
        return await self._ask(name, work)  # by no name: its error has this frame, a garbage cycle

    def _ask(
        self, name: str, work: Callable[[ActiveController], Awaitable[T]]
    ) -> asyncio.Future[T]:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def handle() -> None:
            active = self._active
            try:
                if active is None:
                    raise ApiError(ErrorCode.NOT_CONTROLLER)
                result = await work(active)
                await active.send()
            except ApiError as error:
                give(answer, detached(error))
            except BaseException:  # in any case, no caller is left waiting
                give(answer, ApiError(ErrorCode.NOT_CONTROLLER))
                raise
            else:
                give(answer, result)

        self._events.put_single(name, handle, is_asked_for=True)
        return answer

    def interrupted(self) -> None:
        """Drop the term: the session is new, or the outcome of the last writes is unknown.

        The next election shows the present state; this broker may win it by still being controller,
        and then reads everything again. Events of the old term write and send nothing more.
        """
        for active in (self._active, self._incoming):
            if active is not None:
                active.store.revoke()
        self._resign()
        self._put("elect", self._stand_for_election)

    def _resign(self) -> None:
        self._active = self._incoming = None
        self._settlements.settle_all()

    # Events

    def _put(self, name: str, handle: Handler, *details: str) -> None:
        self._events.put(Event((name, *details), handle))

    def _watch(self, name: str, handle: Handler, *details: str) -> Watch:
        def notice(_: Change) -> None:
            self._put(name, handle, *details)

        return notice

    async def _handle(self, event: Event) -> None:
        try:
            await event.handle()
        except ControllerMovedError as error:
            logger.warning("resigned as controller: broker %d: %s", self._broker_id, error)
            self._resign()
            self._put("elect", self._stand_for_election)
        except StoreError as error:
            logger.error("%s deferred, metadata store unavailable: %s", event.key[0], error)  # noqa: TRY400
            if not event.is_asked_for:
                self._events.put_later(event, RETRY_AFTER_SECONDS)
            online = Event(("online",), self._bring_all_online)
            self._events.put_later(online, RETRY_AFTER_SECONDS)
        except Exception as error:  # noqa: BLE001 - told
            self.on_failure(f"controller's {event.key[0]}", error)
            if event.is_about_now:  # else nothing would check again before the next change
                self._events.put_again(event, RETRY_AFTER_SECONDS)

    async def _stand_for_election(self) -> None:
        if self._is_retired:
            return
        await self.before_election()
        watch = self._watch("elect", self._stand_for_election)
        term = await elect(self._store, self._broker_id, self._now_ms(), watch)
        if term is None:
            await self._note_other_controller()
        elif self._active is None or self._active.context.term != term:
            await self._on_elected(term)
        self._ready.set()

    async def _note_other_controller(self) -> None:
        self.controller_id = await current_controller(self._store)
        if self._active is not None and self.controller_id != self._broker_id:
            logger.info("controller is broker %s now", self.controller_id)
            self._resign()
        if self.controller_id is None:
            self._put("elect", self._stand_for_election)

    async def _on_elected(self, term: Term) -> None:
        logger.info("elected controller: broker %d, epoch %d", self._broker_id, term.epoch)
        self._resign()
        active = self._incoming = ActiveController(
            ControllerContext(self._broker_id, term),
            self._store,
            self._delivery.deliver,
            self._unclean,
            self._slices,
        )
        with contextlib.suppress(NodeExistsError):
            await self._store.create(FEATURE, encode_levels({}))
        context = active.context
        context.live_brokers = await self._brokers.read()
        # In this order: what is to be deleted is then among the topics.
        doomed = await self._store.children(DELETE_TOPICS, self._watch_deletions())
        topics = await self._store.children(TOPICS, self._watch_topics())
        announcements = self._announcements
        active.reassignments.on_finish = lambda: self._put("written moves", announcements.on_moves)
        active.reassignments.on_progress = lambda: self._put("moves", self._on_moves)
        for name, handler in self._announcements.handlers.items():
            self._put(name, handler)
        slices = self._slices()
        await load_topics(self._store, context, topics, self._watch_topic, slices)
        present = context.live_brokers
        born_again = await load_states(self._store, context, context.partitions(), slices)
        context.live_brokers = {one: present[one] for one in present.keys() - born_again}
        await active.deletion.enqueue(doomed)
        active.batch.publish(context.live_brokers, ())
        await active.send()
        await active.replicas.start()
        await active.partitions.start()
        await active.send()
        await active.partitions.bring_online()
        await broker_changes.take_out_missing(active)
        await active.send()
        await broker_changes.bring_back(active, present, born_again)
        await active.reassignments.resume()
        await active.send()
        self._active, self._incoming = active, None
        self.controller_id = self._broker_id
        await self._advance_deletions(active)

    async def _bring_all_online(self) -> None:
        """After a failed write: give leaders to the partitions that got none."""
        active = self._active
        if active is not None:
            await active.partitions.bring_online()
            await active.send()

    async def _on_brokers(self) -> None:
        active = self._active
        if active is None:
            return
        context = active.context
        before = context.live_brokers
        now = await self._brokers.read()
        # A broker that returned before its death was seen has died nevertheless.
        again = {one for one in now.keys() & before.keys() if now[one].epoch != before[one].epoch}
        died = (before.keys() - now.keys()) | again
        arrived = (now.keys() - before.keys()) | again
        context.live_brokers = {one: now[one] for one in now if one not in again}
        active.batch.publish(context.live_brokers, ())
        if died:
            logger.info("brokers %s failed or left", sorted(died))
            try:
                await broker_changes.brokers_died(active, died)
            except StoreError:
                context.live_brokers = before  # so that they die again when this is tried again
                raise
            await active.send()
        context.live_brokers = now
        if arrived:
            await broker_changes.brokers_arrived(active, arrived)
            await active.reassignments.resume(arrived)
        active.batch.publish(context.live_brokers, ())
        await active.send()
        await self._advance_deletions(active)

    async def _on_topics(self) -> None:
        active = self._active
        if active is None:
            return
        context = active.context
        names = await self._store.children(TOPICS, self._watch_topics())
        for topic in context.assignments.keys() - set(names):
            context.forget(topic)
        new = [topic for topic in names if topic not in context.assignments]
        for start in range(0, len(new), TOPICS_AT_ONCE):
            some = new[start : start + TOPICS_AT_ONCE]
            added = await load_topics(self._store, context, some, self._watch_topic, self._slices())
            await self._bring_up(active, added)

    async def _on_topic(self, topic: str) -> None:
        """Add new partitions; a topic in deletion gets none, so that nothing is left of it."""
        active = self._active
        if active is None or topic not in active.context.assignments:
            return
        if topic not in active.context.deleting:
            added = await load_topics(
                self._store, active.context, [topic], self._watch_topic, self._slices()
            )
            await self._bring_up(active, added)

    async def _bring_up(self, active: ActiveController, added: list[TopicPartition]) -> None:
        context = active.context
        try:
            await load_states(self._store, context, added, self._slices())
        except StoreError:
            context.forget_partitions(added)  # so that they are new when it is tried again
            raise
        await active.partitions.enter(added, PartitionPhase.NEW)
        await active.replicas.enter(context.replicas(added), ReplicaPhase.NEW)
        await active.partitions.bring_online(added)
        await active.replicas.enter(context.replicas(added), ReplicaPhase.ONLINE)
        await active.send()

    async def _on_deletions(self) -> None:
        active = self._active
        if active is None:
            return
        names = set(await self._store.children(DELETE_TOPICS, self._watch_deletions()))
        if not names <= active.context.assignments.keys():
            await self._on_topics()  # partitions added since the last look are deleted, too
        await active.deletion.enqueue(names - active.context.deleting)
        await self._advance_deletions(active)

    async def _advance_deletions(self, active: ActiveController) -> None:
        self._settlements.settle(await active.deletion.advance())
        await active.send()
        self._settlements.settle(active.context.blocked_deletions)

    async def _on_replicas_stopped(
        self, active: ActiveController, broker_id: int, errors: dict[TopicPartition, int]
    ) -> None:
        await active.deletion.replicas_stopped(broker_id, errors)
        await self._advance_deletions(active)

    async def _on_moves(self) -> None:
        active = self._active
        if active is not None:
            failure = await active.reassignments.advance_all()
            await active.send()
            if failure is not None:
                raise failure

    # Watches

    def _watch_topics(self) -> Watch:
        return self._watch("topics", self._on_topics)

    def _watch_deletions(self) -> Watch:
        return self._watch("deletions", self._on_deletions)

    def _watch_topic(self, topic: str) -> Watch:
        return self._watch("topic", lambda: self._on_topic(topic), topic)


async def _do_nothing() -> None:
    """Do nothing before an election, where nothing has to be done."""
