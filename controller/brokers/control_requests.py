"""Batches the changes that brokers have to learn, and makes the control requests. Pure.

One batch belongs to one step of the controller. Its requests leave in Apache Kafka's order: to
every broker LeaderAndIsr first, then UpdateMetadata, then StopReplica, so that a broker leads a
partition before clients learn of it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from controller.znodes import LEADER_DURING_DELETE, NO_LEADER
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataPartitionState, UpdateMetadataRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from controller.context import ControllerContext, LiveBroker, Replica, TopicPartition
    from protocol.schema import Request

PARTITIONS_PER_REQUEST = 1000
"""A longer list is cut, so that no single request holds a broker up for long."""

EPOCH_DURING_DELETE = -2
S = TypeVar("S")
_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

LiveLeader = LeaderAndIsrRequest.LiveLeader
LiveBrokerState = UpdateMetadataRequest.LiveBroker
StopState = StopReplicaRequest.TopicState.PartitionState


class ControlRequestBatch:
    """The control requests of one step of the controller."""

    def __init__(self, context: ControllerContext) -> None:
        """Start empty; states are read from `context` when they are added."""
        self._context = context
        self._leaderships: dict[int, dict[TopicPartition, LeaderAndIsrPartitionState]] = {}
        self._metadata: dict[TopicPartition, UpdateMetadataPartitionState] = {}
        self._metadata_brokers: set[int] = set()
        self._stops: dict[int, dict[TopicPartition, bool]] = {}

    def lead_or_follow(self, brokers: Iterable[int], at: TopicPartition, *, is_new: bool) -> None:
        """Add LeaderAndIsr of a partition for live `brokers`, and UpdateMetadata for all."""
        leadership = self._context.leadership[at]
        state = leadership.state
        move = self._context.reassigning.get(at)
        for broker_id in brokers:
            if broker_id not in self._context.live_brokers:
                continue
            states = self._leaderships.setdefault(broker_id, {})
            already_new = at in states and states[at].is_new
            states[at] = LeaderAndIsrPartitionState(
                topic_name=at.topic,
                partition_index=at.partition,
                controller_epoch=state.controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.in_sync_replicas),
                partition_epoch=leadership.partition_epoch,
                replicas=list(self._context.replicas_of(at)),
                adding_replicas=[] if move is None else list(move.adding),
                removing_replicas=[] if move is None else list(move.removing),
                is_new=is_new or already_new,
                leader_recovery_state=int(state.is_recovering),
            )
        self.publish(self._context.live_brokers, [at])

    def publish(self, brokers: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Add UpdateMetadata for `brokers`: the live brokers, and the state of some partitions."""
        self._metadata_brokers.update(brokers)
        for at in partitions:
            leadership = self._context.leadership.get(at)
            if leadership is None:
                continue
            state = leadership.state
            is_deleting = at.topic in self._context.deleting
            replicas = self._context.replicas_of(at)
            usable = self._context.usable_brokers(at)
            self._metadata[at] = UpdateMetadataPartitionState(
                topic_name=at.topic,
                partition_index=at.partition,
                controller_epoch=state.controller_epoch,
                leader=LEADER_DURING_DELETE if is_deleting else state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.in_sync_replicas),
                zk_version=leadership.partition_epoch,
                replicas=list(replicas),
                offline_replicas=[replica for replica in replicas if replica not in usable],
            )

    def stop(self, replica: Replica, *, delete: bool) -> None:
        """Add StopReplica for a live broker, perhaps with deletion."""
        if replica.broker_id in self._context.live_brokers:
            stops = self._stops.setdefault(replica.broker_id, {})
            stops[replica.at] = delete or stops.get(replica.at, False)

    def take_requests(self) -> Iterator[tuple[int, Request]]:
        """Empty the batch into requests, each with its broker.

        Requests for a broker that has died since are dropped: it gets the whole state when it
        returns. The batch is empty once the first request is taken.
        """
        live = self._context.live_brokers
        leaderships, self._leaderships = self._leaderships, {}
        metadata, self._metadata = self._metadata, {}
        told, self._metadata_brokers = self._metadata_brokers, set()
        stops, self._stops = self._stops, {}
        for broker_id in sorted(leaderships.keys() & live.keys()):
            for request in self._leader_and_isr(broker_id, leaderships[broker_id]):
                yield broker_id, request
        for broker_id in sorted(told & live.keys()):
            for update in self._update_metadata(broker_id, metadata):
                yield broker_id, update
        for broker_id in sorted(stops.keys() & live.keys()):
            for stop in self._stop_replica(broker_id, stops[broker_id]):
                yield broker_id, stop

    def _leader_and_isr(
        self, broker_id: int, leaderships: dict[TopicPartition, LeaderAndIsrPartitionState]
    ) -> Iterator[LeaderAndIsrRequest]:
        for states in _chunks(leaderships):
            leaders = sorted({state.leader for state in states.values()} - {NO_LEADER})
            live = self._context.live_brokers
            yield LeaderAndIsrRequest(
                controller_id=self._context.broker_id,
                controller_epoch=self._context.term.epoch,
                broker_epoch=live[broker_id].epoch,
                topic_states=[
                    LeaderAndIsrRequest.TopicState(
                        topic_name=topic,
                        topic_id=self._context.topic_id(topic),
                        partition_states=[states[at] for at in partitions],
                    )
                    for topic, partitions in _by_topic(states).items()
                ],
                live_leaders=[
                    _live_leader(leader, live[leader]) for leader in leaders if leader in live
                ],
            )

    def _update_metadata(
        self, broker_id: int, metadata: dict[TopicPartition, UpdateMetadataPartitionState]
    ) -> Iterator[UpdateMetadataRequest]:
        live_brokers = [_live_broker(id_, b) for id_, b in self._context.live_brokers.items()]
        for states in _chunks(metadata):
            yield UpdateMetadataRequest(
                controller_id=self._context.broker_id,
                controller_epoch=self._context.term.epoch,
                broker_epoch=self._context.live_brokers[broker_id].epoch,
                topic_states=[
                    UpdateMetadataRequest.TopicState(
                        topic_name=topic,
                        topic_id=self._context.topic_id(topic),
                        partition_states=[states[at] for at in partitions],
                    )
                    for topic, partitions in _by_topic(states).items()
                ],
                live_brokers=live_brokers,
            )

    def _stop_replica(
        self, broker_id: int, stops: dict[TopicPartition, bool]
    ) -> Iterator[StopReplicaRequest]:
        for some in _chunks(stops):
            yield StopReplicaRequest(
                controller_id=self._context.broker_id,
                controller_epoch=self._context.term.epoch,
                broker_epoch=self._context.live_brokers[broker_id].epoch,
                topic_states=[
                    StopReplicaRequest.TopicState(
                        topic_name=topic,
                        partition_states=[
                            StopState(
                                partition_index=at.partition,
                                leader_epoch=self._epoch_to_stop(at),
                                delete_partition=some[at],
                            )
                            for at in partitions
                        ],
                    )
                    for topic, partitions in _by_topic(some).items()
                ],
            )

    def _epoch_to_stop(self, at: TopicPartition) -> int:
        if at.topic in self._context.deleting:
            return EPOCH_DURING_DELETE
        leadership = self._context.leadership.get(at)
        return -1 if leadership is None else leadership.state.leader_epoch


def _chunks(states: dict[TopicPartition, S]) -> Iterator[dict[TopicPartition, S]]:
    """Cut a long list; an empty one is one empty piece, for requests that only list brokers."""
    remaining = iter(states.items())
    piece = dict(islice(remaining, PARTITIONS_PER_REQUEST))
    while True:
        yield piece
        piece = dict(islice(remaining, PARTITIONS_PER_REQUEST))
        if not piece:
            return


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    grouped: dict[str, list[TopicPartition]] = {}
    for at in partitions:
        grouped.setdefault(at.topic, []).append(at)
    return grouped


def _live_leader(broker_id: int, broker: LiveBroker) -> LeaderAndIsrRequest.LiveLeader:
    endpoint = broker.registration.endpoints[0]
    return LiveLeader(broker_id=broker_id, host_name=endpoint.host, port=endpoint.port)


def _live_broker(broker_id: int, broker: LiveBroker) -> UpdateMetadataRequest.LiveBroker:
    return LiveBrokerState(
        id=broker_id,
        endpoints=[
            LiveBrokerState.Endpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=_SECURITY_PROTOCOLS[endpoint.security_protocol],
            )
            for endpoint in broker.registration.endpoints
        ],
        rack=broker.registration.rack,
    )
