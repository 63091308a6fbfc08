"""All share groups in the partitions that this broker leads, and their members' sessions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from broker.share_partitions.led_partition import LedSharePartition
from broker.share_partitions.share_sessions import ShareSessions
from coordinator.share_state.state import SharePartition
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.partitions.replicas import Replicas
    from broker.share_partitions.led_partition import ShareParts
    from broker.share_partitions.share_sessions import ShareSession, TopicPartition

K = TypeVar("K")

LEFT_AT_ONCE: Final = 500
RELEASED_AT_ONCE: Final = 10
"""Partitions of a session that has ended. Fixed: each of the two takes a few milliseconds."""


class SharePartitions:
    """Created at a member's first request; removed with leadership, or when a group has left."""

    def __init__(self, parts: ShareParts, replicas: Replicas, max_sessions: int) -> None:
        self.sessions = ShareSessions(max_sessions, self._lost)
        self.groups = parts.groups
        self._parts = parts
        self._replicas = replicas
        self._led: dict[SharePartition, LedSharePartition] = {}
        self._by_group: dict[str, dict[SharePartition, LedSharePartition]] = {}
        self._by_partition: dict[Partition, dict[SharePartition, LedSharePartition]] = {}

    def __len__(self) -> int:
        return len(self._led)

    @property
    def records_in_flight(self) -> int:
        """Of all groups."""
        return sum(led.records_in_flight for led in self._led.values())

    def find(self, group_id: str, wanted: TopicPartition) -> LedSharePartition | None:
        """The led share-partition of a group, if there is one."""
        return self._led.get(SharePartition(group_id, wanted.topic_id, wanted.partition))

    def obtain(self, group_id: str, wanted: TopicPartition, topic: str) -> LedSharePartition:
        """As `find`, or else begin to serve it. Raises ApiError if this broker does not lead."""
        led = self.find(group_id, wanted)
        if led is not None:
            return led
        partition = self._replicas.partition(topic, wanted.partition)
        if partition is None or partition.topic_id != wanted.topic_id:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition.check_leads()
        key = SharePartition(group_id, wanted.topic_id, wanted.partition)
        led = LedSharePartition(key, partition, self._parts, self)
        self._led[key] = led
        self._by_group.setdefault(group_id, {})[key] = led
        self._by_partition.setdefault(partition, {})[key] = led
        led.load()
        return led

    def partition_changed(self, partition: Partition, is_leader: bool) -> None:  # noqa: ARG002
        """Forget the state: the role of a replica has changed, or an epoch was missed."""
        for led in list(self._by_partition.get(partition, {}).values()):
            self._end(led)

    def end_session(self, session: ShareSession) -> None:
        """Remove a member that is gone: its records become available to others."""
        if self.sessions.remove(session):
            self._lost(session)

    def stop(self) -> None:
        """Serve nothing more: the broker stops."""
        for led in list(self._led.values()):
            self._end(led)

    def is_over(self, led: LedSharePartition) -> None:
        """Forget one that has ended by itself: the next request gets a new one."""
        self._forget(led)

    def has_settled(self, led: LedSharePartition) -> None:
        """Its group may have left meanwhile, when it could not be forgotten yet."""
        if led.is_idle and not self.sessions.has_group(led.key.group_id):
            self._end(led)

    def has_stored(self, led: LedSharePartition) -> None:
        """Forget a group that has no session left, once its changes are stored."""
        self._drop_unused(led.key.group_id)

    def _lost(self, session: ShareSession) -> None:
        """A session has ended."""
        self._leave(session, [])

    def _leave(self, session: ShareSession, left: list[LedSharePartition]) -> None:
        """Remove the member from all partitions, some at a time, and then release its records.

        All are busy before the first is idle: a group without sessions is forgotten then.
        """
        partitions, (group_id, member_id) = session.partitions, session.member
        for _ in range(min(LEFT_AT_ONCE, len(partitions))):
            each, _ = partitions.popitem(last=False)
            led = self.find(group_id, each)
            if led is not None and led.leave(member_id):
                left.append(led)
        if partitions:
            self._parts.timers.soon(partial(self._leave, session, left))
        else:
            self._release(group_id, left)

    def _release(self, group_id: str, left: list[LedSharePartition]) -> None:
        for led in left[:RELEASED_AT_ONCE]:
            led.release_departed()
        rest = left[RELEASED_AT_ONCE:]
        if rest:
            self._parts.timers.soon(partial(self._release, group_id, rest))
        else:
            self._drop_unused(group_id)

    def _drop_unused(self, group_id: str) -> None:
        """Forget a group without sessions: the next request reads the stored state.

        A partition with changes to store is kept: read before that, its records would be
        redelivered.
        """
        if self.sessions.has_group(group_id):
            return
        for led in list(self._by_group.get(group_id, {}).values()):
            if led.is_idle:
                self._end(led)

    def _end(self, led: LedSharePartition) -> None:
        led.end(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self._forget(led)

    def _forget(self, led: LedSharePartition) -> None:
        key, partition = led.key, led.partition
        if self._led.get(key) is not led:
            return
        del self._led[key]
        _remove(self._by_group, key.group_id, key)
        _remove(self._by_partition, partition, key)


def _remove(
    index: dict[K, dict[SharePartition, LedSharePartition]], name: K, key: SharePartition
) -> None:
    del index[name][key]
    if not index[name]:
        del index[name]
