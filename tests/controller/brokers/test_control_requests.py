"""Control requests of one controller step: in pieces, and only to live brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.brokers.control_requests import PARTITIONS_PER_REQUEST, ControlRequestBatch
from controller.context import (
    ControllerContext,
    Leadership,
    LiveBroker,
    Replica,
    Term,
    TopicPartition,
)
from controller.znodes import BrokerRegistration, Endpoint, PartitionState
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC = "flights"


def context_of(brokers: Sequence[int], partitions: int) -> ControllerContext:
    """A topic whose partitions have replicas on all of these brokers, the first of which leads."""
    context = ControllerContext(brokers[0], Term(1, 1))
    for one in brokers:
        registration = BrokerRegistration((Endpoint("PLAINTEXT", "h", 9092),))
        context.live_brokers[one] = LiveBroker(registration, epoch=one)
    context.assignments[TOPIC] = dict.fromkeys(range(partitions), tuple(brokers))
    state = PartitionState(brokers[0], 0, tuple(brokers), controller_epoch=1)
    for at in context.partitions():
        context.leadership[at] = Leadership(state, 0)
    return context


def test_a_broker_that_died_before_requests_were_made_gets_none() -> None:
    context = context_of([0, 1], partitions=1)
    batch = ControlRequestBatch(context)
    at = TopicPartition(TOPIC, 0)
    batch.lead_or_follow([0, 1], at, is_new=False)
    batch.stop(Replica(at, 1), delete=True)

    del context.live_brokers[1]
    requests = list(batch.take_requests())

    assert [(broker_id, type(request)) for broker_id, request in requests] == [
        (0, LeaderAndIsrRequest),
        (0, UpdateMetadataRequest),
    ]
    assert not list(batch.take_requests())


def test_control_requests_are_split_by_partition_count() -> None:
    count = 2 * PARTITIONS_PER_REQUEST + 1
    context = context_of([0], count)
    batch = ControlRequestBatch(context)
    for at in context.partitions():
        batch.lead_or_follow([0], at, is_new=False)
        batch.stop(Replica(at, 0), delete=True)

    requests = [request for _, request in batch.take_requests()]

    kinds = (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)
    assert [type(request) for request in requests] == [each for each in kinds for _ in range(3)]
    for kind in kinds:
        told = [
            state.partition_index
            for request in requests
            if isinstance(request, kind)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
        assert told == list(range(count))
