"""Members of a share group in front of a shard, and the share coordinator's answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordinator.settings import GroupSettings
from coordinator.share_groups.heartbeats import ShareCaller
from coordinator.share_groups.settings import ShareGroupSettings
from protocol.errors import ErrorCode
from protocol.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.coordinator.few_topics import FewTopics
from tests.coordinator.harness import GROUP, Harness, Inbox

if TYPE_CHECKING:
    from coordinator.share_groups.group import ShareGroup
    from coordinator.share_groups.initialisation import Initialisation

AT_ONCE = ShareGroupSettings(assignment_interval_ms=0)
CALLER = ShareCaller("app", "/10.0.0.1")


@dataclass
class Shares:
    """A shard, its requests to share coordinators, and the answers to members."""

    harness: Harness
    asked: list[Initialisation] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=dict)
    told: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    @property
    def group(self) -> ShareGroup:
        """The group, which exists."""
        group = self.harness.shard.shares.groups.find(GROUP)
        assert group is not None
        return group

    def beat(self, member: str, *topics: str, **said: Any) -> ShareGroupHeartbeatResponse:
        """Send a heartbeat in the epoch last answered; topics if there are any."""
        request = ShareGroupHeartbeatRequest(
            **{
                "group_id": GROUP,
                "member_id": member,
                "member_epoch": self.epochs.get(member, 0),
                "subscribed_topic_names": list(topics) or None,
                **said,
            }
        )
        inbox, harness = Inbox(), self.harness
        effects, wanted = harness.shard.shares.heartbeat(request, CALLER, inbox, harness.now_ms)
        harness.run(effects)
        if wanted is not None:
            self.asked.append(wanted)
        answer: ShareGroupHeartbeatResponse = inbox.response
        if not answer.error_code:
            self.epochs[member] = max(answer.member_epoch, 0)
            if answer.assignment is not None:
                self.told[member] = {
                    str(self.harness.topics.name_of(each.topic_id)): each.partitions
                    for each in answer.assignment.topic_partitions
                }
        return answer

    def leave(self, member: str) -> ErrorCode:
        """Leave the group."""
        return ErrorCode(self.beat(member, member_epoch=-1).error_code)

    def initialise(self, *, failing: bool = False) -> None:
        """Answer all requests as the share coordinators."""
        asked, self.asked = self.asked, []
        for wanted in asked:
            places = list(wanted.start_offsets)
            done, failed = ([], places) if failing else (places, [])
            shares = self.harness.shard.shares
            self.harness.append(shares.handle_initialised(wanted.group_id, done, failed))

    def settle(self, *members: str) -> None:
        """Initialise all partitions, and send members their assignments."""
        self.initialise()
        for _ in range(2):
            for member in members:
                assert not self.beat(member).error_code


def share_harness(settings: ShareGroupSettings = AT_ONCE, **topics: int) -> Shares:
    """A shard in a cluster with these topics, which assigns as often as it likes."""
    few = FewTopics()
    for name, partitions in topics.items():
        few.put(name, partitions)
    return Shares(Harness(GroupSettings(share=settings), few))
