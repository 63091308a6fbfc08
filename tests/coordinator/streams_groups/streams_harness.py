"""Members of streams groups in front of a shard, which follow its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordinator.settings import GroupSettings
from coordinator.streams_groups.heartbeats.membership import HeartbeatCaller
from coordinator.streams_groups.settings import StreamsGroupSettings
from protocol.errors import ErrorCode
from protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupTaskIds,
)
from tests.coordinator.few_topics import FewTopics
from tests.coordinator.harness import GROUP, Harness, Inbox
from tests.support.broker_parts.steps import finished
from tests.support.topologies import Topology, topology

if TYPE_CHECKING:
    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.heartbeats.responses import Outcome

AT_ONCE = StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0)
CALLER = HeartbeatCaller("app", "/10.0.0.1")
KINDS = ("active", "standby", "warmup")
SOURCES = {"one": 6, "two": 4}

Tasks = dict[str, list[int]]


def streams_harness(settings: StreamsGroupSettings = AT_ONCE, **topics: int) -> Harness:
    """A shard in a cluster with these topics, which assigns as often as it likes."""
    few = FewTopics()
    for name, partitions in (topics or SOURCES).items():
        few.put(name, partitions)
    return Harness(GroupSettings(streams=settings), few)


def group_of(harness: Harness, group_id: str = GROUP) -> StreamsGroup:
    """The group, which exists."""
    group = harness.shard.streams.groups.find(group_id)
    assert group is not None
    return group


def beat(harness: Harness, **said: Any) -> Outcome:
    """Send one heartbeat; the topics that it finds missing are created."""
    inbox = Inbox()
    options: dict[str, Any] = {"group_id": GROUP, "endpoint_information_epoch": -1} | said
    request = StreamsGroupHeartbeatRequest(**options)
    harness.run(harness.shard.streams.heartbeat(request, CALLER, inbox, harness.now_ms))
    outcome: Outcome = inbox.response
    for topic in outcome.missing.values():
        harness.topics.put(topic.name, topic.partitions)
    return outcome


@dataclass
class Member:
    """A thread of an application: it owns its last assigned tasks, unless it is slow."""

    harness: Harness
    member_id: str
    topology: Topology = field(default_factory=lambda: topology("stateful", "app"))
    process_id: str = "p"
    epoch: int = 0
    owned: dict[str, Tasks] = field(default_factory=dict)
    answer: StreamsGroupHeartbeatResponse | None = None
    """The last one that was no error."""

    def join(self, **said: Any) -> ErrorCode:
        """Join, or join again with nothing."""
        self.epoch, self.owned = 0, {}
        options: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "topology": self.topology,
            "process_id": self.process_id,
        }
        return self.heartbeat(**(options | said))

    def heartbeat(self, **said: Any) -> ErrorCode:
        """Report the owned tasks, and take over the answered assignment."""
        options = {f"{kind}_tasks": self._said(kind) for kind in KINDS} | said
        answer = beat(
            self.harness, member_id=self.member_id, member_epoch=self.epoch, **options
        ).response
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self.answer, self.epoch = answer, answer.member_epoch
            if answer.active_tasks is not None:
                self.owned = {kind: told(getattr(answer, f"{kind}_tasks")) for kind in KINDS}
        return error

    def leave(self) -> ErrorCode:
        """Leave the group."""
        outcome = beat(self.harness, member_id=self.member_id, member_epoch=-1)
        return ErrorCode(outcome.response.error_code)

    def _said(self, kind: str) -> list[StreamsGroupTaskIds]:
        tasks = self.owned.get(kind, {})
        return [
            StreamsGroupTaskIds(subtopology_id=name, partitions=list(tasks[name])) for name in tasks
        ]

    def count(self, kind: str = "active") -> int:
        """Return the number of tasks of a kind it owns."""
        return sum(map(len, self.owned.get(kind, {}).values()))

    @property
    def statuses(self) -> list[int]:
        """Return the statuses of its last answer."""
        assert self.answer is not None
        return [each.status_code for each in self.answer.status or ()]


def told(tasks: list[StreamsGroupTaskIds] | None) -> Tasks:
    """Tasks of an answer."""
    return {each.subtopology_id: sorted(each.partitions) for each in tasks or ()}


def settle(*members: Member) -> None:
    """Heartbeats until nothing changes any more."""
    for _ in range(3 * len(members) + 4):
        before = [(each.epoch, dict(each.owned)) for each in members]
        for each in members:
            assert each.heartbeat() is ErrorCode.NONE
        if before == [(each.epoch, each.owned) for each in members]:
            return
    raise AssertionError("the group does not settle")


def described(harness: Harness, group_id: str = GROUP) -> Any:
    """Return the answer of StreamsGroupDescribe."""
    return finished(harness.shard.streams.describe(group_id))
