"""A follower's side of a fetch session (KIP-227): each request has only the changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from broker.fetch.fetch_sessions import INITIAL_EPOCH, LAST_EPOCH, NO_SESSION
from protocol.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from uuid import UUID

    from broker.partitions.partition import Partition

VERSION = 17
"""Fetch version of Apache Kafka 3.9 between brokers."""

Topic = FetchRequest.Topic
Wanted = FetchRequest.Topic.Partition
Forgotten = FetchRequest.ForgottenTopicsData


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Size limits and wait time of a fetch."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


class Position(NamedTuple):
    """Fields of a request for one partition. Equal ones need not be sent again."""

    leader_epoch: int
    offset: int
    last_epoch: int
    log_start_offset: int


class FetchRequests:
    """Makes one follower's requests to one leader, and remembers what that leader knows."""

    def __init__(
        self, broker_id: int, broker_epoch: Callable[[], int], limits: FetchLimits
    ) -> None:
        """The id and epoch are the follower's."""
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._limits = limits
        self._session = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._told: dict[Partition, Position] = {}

    def reset(self) -> None:
        """Begin a new session: the next request says everything."""
        self._session = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._told = {}

    def opened(self, session: int) -> bool:
        """The leader answered; returns whether it keeps a session, which is 0 if not."""
        if session == NO_SESSION:
            return False
        self._session = session
        self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1
        return True

    def make(self, wanted: Container[Partition], changed: Iterable[Partition]) -> FetchRequest:
        """The next request, for all partitions in `wanted`.

        `changed` are those whose position may differ from the one sent, or that were added to or
        removed from `wanted`; all of `wanted` after a `reset`.
        """
        told = self._told
        listed: dict[UUID, Topic] = {}
        forgotten: list[Forgotten] = []
        for partition in changed:
            if partition in wanted:
                at = position_of(partition)
                if told.get(partition) != at:
                    told[partition] = at
                    self._list(listed, partition, at)
            elif told.pop(partition, None) is not None:
                forgotten.append(
                    Forgotten(topic_id=partition.topic_id, partitions=[partition.index])
                )
        limits = self._limits
        return FetchRequest(
            replica_state=FetchRequest.ReplicaState(
                replica_id=self._broker_id, replica_epoch=self._broker_epoch()
            ),
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            session_id=self._session,
            session_epoch=self._epoch,
            topics=list(listed.values()),
            forgotten_topics_data=forgotten,
        )

    def is_current(self, partition: Partition) -> bool:
        """Return whether the leader's answer is for the replica as it is now."""
        return self._told.get(partition) == position_of(partition)

    def _list(self, listed: dict[UUID, Topic], partition: Partition, at: Position) -> None:
        topic_id = partition.topic_id
        topic = listed.get(topic_id)
        if topic is None:
            topic = listed[topic_id] = Topic(topic_id=topic_id, partitions=[])
        topic.partitions.append(
            Wanted(
                partition=partition.index,
                current_leader_epoch=at.leader_epoch,
                fetch_offset=at.offset,
                last_fetched_epoch=at.last_epoch,
                log_start_offset=at.log_start_offset,
                partition_max_bytes=self._limits.partition_max_bytes,
            )
        )


def position_of(partition: Partition) -> Position:
    """Fetch position of a replica."""
    log = partition.log
    return Position(
        partition.leader_epoch, log.log_end_offset, log.latest_epoch, log.log_start_offset
    )
