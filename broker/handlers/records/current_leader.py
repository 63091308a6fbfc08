"""The leader of a partition, for a client that asked another broker: it saves a Metadata (KIP-951).

An answer names the leader of each partition, and the endpoint of each leader once:

    request    since    with the error
    Produce    v10      NOT_LEADER_OR_FOLLOWER
    Fetch      v16      NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH; no endpoints for followers

A leader that is dead, or lacks the client's listener, is named without an endpoint; -1 is none.
Source: `KafkaApis.getCurrentLeader`, and what Apache Kafka 3.9.1 and 4.3.1 answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.metadata.metadata_cache import Node
    from broker.requests.context import Context

NO_LEADER = -1
NO_EPOCH = -1


class CurrentLeader(NamedTuple):
    """A leader, as far as this broker knows."""

    leader_id: int
    leader_epoch: int
    node: Node | None
    """Its endpoint on the client's listener."""


def current_leader(context: Context, topic: str | None, index: int) -> CurrentLeader:
    """The leader as the replica here knows it, or else the metadata, which is updated later."""
    broker = context.broker
    leader_id, leader_epoch = NO_LEADER, NO_EPOCH
    if topic is not None:
        known = broker.replicas.partition(topic, index)
        if known is not None:
            leader_id, leader_epoch = known.leader_id, known.leader_epoch
        elif (state := broker.metadata.partition(topic, index)) is not None:
            leader_id, leader_epoch = state.leader, state.leader_epoch
    return CurrentLeader(leader_id, leader_epoch, broker.metadata.node(leader_id, context.listener))
