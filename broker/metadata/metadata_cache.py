"""The cluster as of the controller's last UpdateMetadata: brokers, topics, partitions.

Clients' requests about them are answered from here, never from the store: all brokers answer alike,
also while the store is unavailable.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.runtime.supervision import log_failure
from protocol.errors import ErrorCode
from protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from protocol.messages.update_metadata import UpdateMetadataPartitionState

NO_LEADER = -1
LEADER_DURING_DELETE = -2
LISTS_KEPT = 10_000
"""Number of lists above which sharing starts over. Fixed: on a hundred brokers, as many orders of
three are usual.
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A live broker's address on one listener."""

    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A live broker and its endpoints, by listener name."""

    id: int
    endpoints: Mapping[str, tuple[str, int]]
    rack: str | None

    def node(self, listener: str) -> Node | None:
        """Address on a listener, None if the broker does not have it."""
        endpoint = self.endpoints.get(listener)
        return None if endpoint is None else Node(self.id, *endpoint, self.rack)


@dataclass(slots=True)
class TopicMetadata:
    """One topic; `partitions` is ordered by index."""

    name: str
    topic_id: UUID
    partitions: dict[int, UpdateMetadataPartitionState] = field(default_factory=dict)
    revision: int = 0
    """Changes with every update of the topic; responses built from it are valid until then."""

    @property
    def has_all_leaders(self) -> bool:
        """True if every partition has a leader."""
        return all(state.leader >= 0 for state in self.partitions.values())


class MetadataCache:
    """Brokers, topics and partitions as of the last UpdateMetadata."""

    def __init__(self) -> None:
        self.controller_id: int | None = None
        self.controller_epoch = -1
        self.brokers: dict[int, LiveBroker] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self.is_awaited = False
        """True if this broker has just joined a cluster and has had no UpdateMetadata yet."""
        self.revision = 0
        """Changes with every update of anything."""
        self.created_revision = 0
        """The revision in which the latest topic appeared."""
        self.derived: dict[tuple[object, ...], object] = {}
        """Answers made from the cache, under keys of their makers; emptied by each update."""
        self._names: dict[UUID, str] = {}
        self._lists: dict[tuple[int, ...], list[int]] = {}
        """Immutable lists of brokers in the states, shared."""
        self._listeners: list[Callable[[UpdateMetadataRequest], None]] = []
        self._waiters: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self.on_failure: Callable[[str, BaseException], None] = log_failure
        """Receives the errors of listeners, which do not keep the others from being called."""

    def update(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Apply an UpdateMetadata and call the listeners; its epoch was checked before."""
        self.revision += 1
        self.derived.clear()
        self.controller_epoch = request.controller_epoch
        self.controller_id = request.controller_id
        self._update_brokers(request)
        for topic in request.topic_states:
            self._update_topic(topic)
        for listener in self._listeners:
            try:
                listener(request)
            except Exception as error:  # noqa: BLE001 - reported
                self.on_failure("a listener to metadata", error)
        self._wake_waiters()
        return UpdateMetadataResponse(error_code=ErrorCode.NONE)

    def on_update(self, listener: Callable[[UpdateMetadataRequest], None]) -> None:
        """Call `listener` after each update that was applied."""
        self._listeners.append(listener)

    def settle(self) -> None:
        """Note that the cluster's metadata is complete (`is_awaited`)."""
        self.is_awaited = False
        self._wake_waiters()

    async def wait_until(self, is_reached: Callable[[], bool]) -> None:
        """Return once `is_reached()`, which is called now and after each update."""
        if is_reached():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = is_reached
        try:
            await waiter
        finally:
            self._waiters.pop(waiter, None)

    def is_alive(self, broker_id: int) -> bool:
        """Return whether a broker is registered."""
        return broker_id in self.brokers

    def topic(self, name: str) -> TopicMetadata | None:
        """A topic by name."""
        return self.topics.get(name)

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of the topic that has this id now."""
        return self._names.get(topic_id)

    def topic_id(self, name: str) -> UUID:
        """The topic's id; ZERO_UUID for a topic that is not known."""
        topic = self.topics.get(name)
        return ZERO_UUID if topic is None else topic.topic_id

    def partition(self, topic: str, index: int) -> UpdateMetadataPartitionState | None:
        """A partition's state: leader, leader epoch, replicas, in-sync replicas."""
        known = self.topics.get(topic)
        return None if known is None else known.partitions.get(index)

    def nodes(self, listener: str) -> list[Node]:
        """Live brokers that have a listener, as clients of it see them."""
        nodes = (broker.node(listener) for broker in self.brokers.values())
        return [node for node in nodes if node is not None]

    def node(self, broker_id: int, listener: str) -> Node | None:
        """One live broker as clients of a listener see it."""
        broker = self.brokers.get(broker_id)
        return None if broker is None else broker.node(listener)

    @property
    def live_controller_id(self) -> int:
        """The controller's id if it is live, else -1."""
        if self.controller_id is None or self.controller_id not in self.brokers:
            return -1
        return self.controller_id

    @property
    def racks(self) -> dict[int, str | None]:
        """The racks of live brokers, by id."""
        return {broker.id: broker.rack for broker in self.brokers.values()}

    def _update_brokers(self, request: UpdateMetadataRequest) -> None:
        brokers = {
            broker.id: LiveBroker(
                broker.id, {e.listener: (e.host, e.port) for e in broker.endpoints}, broker.rack
            )
            for broker in request.live_brokers
        }
        if brokers != self.brokers:
            self.brokers = dict(sorted(brokers.items()))

    def _update_topic(self, told: UpdateMetadataRequest.TopicState) -> None:
        name = told.topic_name
        topic = self.topics.get(name)
        if topic is None or topic.topic_id != told.topic_id:
            self._forget(name)
            topic = self.topics[name] = TopicMetadata(name, told.topic_id)
            self.created_revision = self.revision
            if told.topic_id != ZERO_UUID:
                self._names[told.topic_id] = name
        topic.revision = self.revision
        in_order = True
        for state in told.partition_states:
            if state.leader == LEADER_DURING_DELETE:
                topic.partitions.pop(state.partition_index, None)
            else:
                in_order = in_order and state.partition_index >= len(topic.partitions)
                self._share_lists(state)
                topic.partitions[state.partition_index] = state
        if not topic.partitions:
            self._forget(name)
        elif not in_order:
            topic.partitions = dict(sorted(topic.partitions.items()))

    def _share_lists(self, state: UpdateMetadataPartitionState) -> None:
        """Have equal lists of brokers be one: 50,000 partitions would have 150,000 of their own."""
        lists = self._lists
        if len(lists) > LISTS_KEPT:
            lists.clear()
        state.isr = lists.setdefault(tuple(state.isr), state.isr)
        state.replicas = lists.setdefault(tuple(state.replicas), state.replicas)
        offline = tuple(state.offline_replicas)
        state.offline_replicas = lists.setdefault(offline, state.offline_replicas)

    def _forget(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        if topic is not None:
            self._names.pop(topic.topic_id, None)

    def _wake_waiters(self) -> None:
        for waiter, is_reached in list(self._waiters.items()):
            if waiter.done():
                continue
            try:
                if is_reached():
                    waiter.set_result(None)
            except Exception as error:  # noqa: BLE001 - given to who asked
                waiter.set_exception(error)
