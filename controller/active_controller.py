"""The state of one term of a controller, discarded at its end."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.brokers.control_requests import ControlRequestBatch
from controller.brokers.election import FencedStore
from controller.metadata_store.flights import read_many
from controller.partitions.in_sync_changes import InSyncChanges
from controller.partitions.partition_state_machine import PartitionStateMachine
from controller.partitions.reassignment import Reassignments
from controller.partitions.replica_state_machine import ReplicaStateMachine
from controller.topics.deletion import TopicDeletion
from controller.znodes import TOPIC_ENTITY, MalformedZnodeError, config_path, decode_config
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from controller.context import ControllerContext, Replica, TopicPartition
    from controller.metadata_store.store import MetadataStore
    from controller.ports import Slices
    from protocol.schema import Request

logger = logging.getLogger(__name__)

UNCLEAN = "unclean.leader.election.enable"


@dataclass(slots=True)
class UncleanDefault:
    """The default of `unclean.leader.election.enable`; it can change."""

    is_allowed: bool


class ActiveController:
    """The context of a term, and the state machines that share it."""

    def __init__(
        self,
        context: ControllerContext,
        store: MetadataStore,
        deliver: Callable[[ActiveController, int, Request], None],
        unclean: UncleanDefault,
        slices: Callable[[], Slices],
    ) -> None:
        """Begin with an empty context of the term; the controller loads it."""
        self.context = context
        self.store = FencedStore(store, context.term, slices)
        self.slices = slices
        self.batch = ControlRequestBatch(self.context)
        self._reader = store
        self._deliver = deliver
        self._unclean = unclean
        self.partitions = PartitionStateMachine(
            self.context, self.store, self.batch, self._allow_unclean, slices
        )
        self.replicas = ReplicaStateMachine(self.context, self.batch, slices)
        self.in_sync = InSyncChanges(self.context, self.store, self.batch)
        self.reassignments = Reassignments(self, store)
        self.deletion = TopicDeletion(
            self.context,
            (store, self.store),
            self.batch,
            (self.partitions, self.replicas, slices),
        )

    async def send(self) -> None:
        """Send the batched requests. Raises ControllerMovedError if the term was revoked."""
        self.store.require()
        async for broker_id, request in self.slices().each(self.batch.take_requests()):
            self.store.require()
            self._deliver(self, broker_id, request)

    async def publish(
        self, partitions: Iterable[TopicPartition], brokers: Collection[int] | None = None
    ) -> None:
        """Add UpdateMetadata of partitions to the next `send`, for some or all live brokers."""
        told = self.context.live_brokers if brokers is None else brokers
        self.batch.publish(told, ())
        async for at in self.slices().each(partitions):
            self.batch.publish((), [at])

    async def replicas_where(self, is_wanted: Callable[[Replica], bool]) -> list[Replica]:
        """All replicas that satisfy a condition."""
        replicas = self.context.replicas(self.context.partitions())
        return [one async for one in self.slices().each(replicas) if is_wanted(one)]

    def require_broker(self, broker_id: int, broker_epoch: int) -> None:
        """Raises ApiError STALE_BROKER_EPOCH unless this is the epoch of a live broker."""
        if not self.has_life(broker_id, broker_epoch):
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)

    def has_life(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether a broker is live, with this broker epoch."""
        broker = self.context.live_brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    async def _allow_unclean(self, topics: set[str]) -> set[str]:
        """Return the topics whose configuration allows unclean leader election (KIP-106)."""
        names = sorted(topics)
        allowed: set[str] = set()
        slices = self.slices()
        paths = [config_path(TOPIC_ENTITY, name) for name in names]
        nodes = await read_many(self._reader, paths, slices)
        async for name, node in slices.each(zip(names, nodes, strict=True)):
            value = None if node is None else _unclean_in(name, node.data)
            if self._unclean.is_allowed if value is None else value == "true":
                allowed.add(name)
        return allowed


def _unclean_in(topic: str, data: bytes | None) -> str | None:
    """A topic's override; None without one, or if its node is unreadable."""
    try:
        return decode_config(topic, data).get(UNCLEAN)
    except MalformedZnodeError as error:
        logger.error("configuration of topic %s is ignored: %s", topic, error)  # noqa: TRY400
        return None
