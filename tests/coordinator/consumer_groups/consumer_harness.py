"""Consumers of the newer protocol in front of a shard, which follow its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordinator.consumer_groups.heartbeats.request import HeartbeatCaller
from coordinator.consumer_groups.settings import ConsumerGroupSettings
from coordinator.settings import GroupSettings
from protocol.errors import ErrorCode
from protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.coordinator.few_topics import FewTopics
from tests.coordinator.harness import GROUP, Harness, Inbox
from tests.support.broker_parts.steps import finished

if TYPE_CHECKING:
    from uuid import UUID

    from coordinator.consumer_groups.group import ConsumerGroup

AT_ONCE = ConsumerGroupSettings(assignment_interval_ms=0)
CALLER = HeartbeatCaller("app", "/10.0.0.1", lambda _: True)


def consumer_harness(settings: ConsumerGroupSettings = AT_ONCE, **topics: int) -> Harness:
    """A shard in a cluster with these topics, which assigns as often as it likes."""
    few = FewTopics()
    for name, partitions in topics.items():
        few.put(name, partitions)
    return Harness(GroupSettings(consumer=settings), few)


def group_of(harness: Harness, group_id: str = GROUP) -> ConsumerGroup:
    """The group, which exists."""
    group = harness.shard.consumers.groups.find(group_id)
    assert group is not None
    return group


def beat(harness: Harness, **said: Any) -> ConsumerGroupHeartbeatResponse:
    """Send one heartbeat."""
    inbox = Inbox()
    request = ConsumerGroupHeartbeatRequest(**({"group_id": GROUP} | said))
    harness.run(harness.shard.consumers.heartbeat(request, CALLER, inbox, harness.now_ms))
    response: ConsumerGroupHeartbeatResponse = inbox.response
    return response


@dataclass
class Member:
    """A consumer: it owns its last assignment, unless it is slow."""

    harness: Harness
    member_id: str
    topics: list[str]
    instance_id: str | None = None
    epoch: int = 0
    owned: dict[UUID, list[int]] = field(default_factory=dict)

    def join(self, **said: Any) -> ErrorCode:
        """Join, or join again with nothing."""
        self.epoch, self.owned = 0, {}
        options = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": self.topics}
        return self.heartbeat(**(options | said))

    def heartbeat(self, **said: Any) -> ErrorCode:
        """Report the owned partitions, and take over the answered assignment."""
        owned = [
            TopicPartitions(topic_id=topic, partitions=list(p)) for topic, p in self.owned.items()
        ]
        options: dict[str, Any] = {"topic_partitions": owned} | said
        answer = beat(
            self.harness,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            **options,
        )
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                told = answer.assignment.topic_partitions
                self.owned = {each.topic_id: each.partitions for each in told}
        return error

    def leave(self, epoch: int = -1) -> ErrorCode:
        """Leave; -2 is for a while."""
        answer = beat(
            self.harness,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
        )
        return ErrorCode(answer.error_code)

    @property
    def count(self) -> int:
        """Return the number of partitions it owns."""
        return sum(map(len, self.owned.values()))


def settle(*members: Member) -> None:
    """Heartbeats until nothing changes any more."""
    for _ in range(3 * len(members) + 3):
        before = [(each.epoch, dict(each.owned)) for each in members]
        for each in members:
            assert each.heartbeat() is ErrorCode.NONE
        if before == [(each.epoch, each.owned) for each in members]:
            return
    raise AssertionError("the group does not settle")


def described(harness: Harness, group_id: str = GROUP) -> Any:
    """Return the answer of ConsumerGroupDescribe."""
    return finished(harness.shard.consumers.describe(group_id))
