"""Drawn requests about one share group, sent to two brokers, and what is the same of answers.

Which member has which partition is up to each make's hash tables; how many, and that all are read,
is not. What share coordinators are asked for happens after the answer, so that each step waits for
it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from protocol.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from protocol.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
)
from protocol.messages.share_groups import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    import random
    from uuid import UUID

    from tests.interop.security.principals import Principal

GROUP = "g"
MEMBERS = "ABCDE"
TOPICS = {"one": 6, "two": 4}
SETTLED_SECONDS = 10.0
POLL_SECONDS = 0.03
LEAVING = -1


class Step(NamedTuple):
    """A drawn request: topics by name."""

    kind: str
    fields: dict[str, Any]


@dataclass
class Side:
    """A broker, and the answers to its members."""

    asks: Principal
    topics: dict[str, UUID]
    epochs: dict[str, int] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    """Topics that were subscribed to since their state was last deleted."""

    def take(self, step: Step) -> Any:
        """Send a step; returns what shall be the same."""
        return getattr(self, f"_{step.kind}")(**step.fields)

    def _heartbeat(self, member: str, epoch: int, ahead: int, topics: list[str] | None) -> Any:
        known = self.epochs.get(member, 0)
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member,
            member_epoch=known + ahead if epoch > 0 else epoch,
            subscribed_topic_names=topics,
        )
        answer = self.asks.ask(request, 1)
        if not answer.error_code:
            self.epochs[member] = max(answer.member_epoch, 0)
            if request.member_epoch >= 0 and topics is not None:
                self.named |= set(topics) & TOPICS.keys()
                self._settle()
        return (
            *(answer.error_code, answer.error_message, answer.member_id, answer.member_epoch),
            answer.heartbeat_interval_ms,
        )

    def _settle(self) -> None:
        """Wait until all that was named has state."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while any(len(self._offsets().get(name, ())) < TOPICS[name] for name in self.named):
            assert time.monotonic() < deadline, (self.named, self._offsets())
            time.sleep(POLL_SECONDS)

    def _offsets(self) -> dict[str, Any]:
        group = DescribeShareGroupOffsetsRequest.Group(group_id=GROUP, topics=None)
        answer = self.asks.ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1)
        [only] = answer.groups
        assert not only.error_code, only
        return {
            topic.topic_name: sorted(
                (p.partition_index, p.start_offset, p.leader_epoch, p.lag, p.error_code)
                for p in topic.partitions
            )
            for topic in only.topics
        }

    def _some_offsets(self) -> Any:
        kind = DescribeShareGroupOffsetsRequest.Group
        topics = [kind.Topic(topic_name=name, partitions=[0, 3]) for name in (*TOPICS, "nobodys")]
        request = DescribeShareGroupOffsetsRequest(groups=[kind(group_id=GROUP, topics=topics)])
        [only] = self.asks.ask(request, 1).groups
        told = {
            topic.topic_name: [
                (p.partition_index, p.start_offset, p.leader_epoch, p.lag, p.error_code)
                for p in sorted(topic.partitions, key=lambda each: each.partition_index)
            ]
            for topic in only.topics
        }
        return only.error_code, told

    def _describe(self) -> Any:
        request = ShareGroupDescribeRequest(
            group_ids=[GROUP, "nobody"], include_authorized_operations=True
        )
        answer = self.asks.ask(request, 1)
        return {one.group_id: _described(one) for one in answer.groups}

    def _list(self, types: list[str], states: list[str]) -> Any:
        request = ListGroupsRequest(types_filter=types, states_filter=states)
        answer = self.asks.ask(request, 5)
        return [
            (each.group_id, each.protocol_type, each.group_state, each.group_type)
            for each in answer.groups
        ]

    def _alter(self, topics: dict[str, dict[int, int]]) -> Any:
        kind = AlterShareGroupOffsetsRequest.Topic
        request = AlterShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                kind(
                    topic_name=name,
                    partitions=[
                        kind.Partition(partition_index=index, start_offset=offset)
                        for index, offset in offsets.items()
                    ],
                )
                for name, offsets in topics.items()
            ],
        )
        answer = self.asks.ask(request, 0)
        time.sleep(POLL_SECONDS)  # Apache notes what was initialised after the answer
        return answer.error_code, {
            topic.topic_name: sorted((p.partition_index, p.error_code) for p in topic.partitions)
            for topic in answer.responses
        }

    def _forget(self, topics: list[str]) -> Any:
        kind = DeleteShareGroupOffsetsRequest.Topic
        request = DeleteShareGroupOffsetsRequest(
            group_id=GROUP, topics=[kind(topic_name=name) for name in topics]
        )
        answer = self.asks.ask(request, 0)
        told = {each.topic_name: each.error_code for each in answer.responses}
        self.named -= {name for name, code in told.items() if not code}
        return answer.error_code, told

    def _delete(self) -> Any:
        [result] = self.asks.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2).results
        if not result.error_code:
            self.epochs.clear()
            self.named.clear()
        return result.error_code


def _described(group: Any) -> Any:
    members = {
        member.member_id: (
            *(member.member_epoch, member.client_id, sorted(member.subscribed_topic_names)),
            *(member.rack_id, sum(len(t.partitions) for t in member.assignment.topic_partitions)),
        )
        for member in group.members
    }
    return {
        "group": (
            *(group.error_code, group.error_message, group.group_state, group.group_epoch),
            *(group.assignment_epoch, group.assignor_name, group.authorized_operations),
        ),
        "members": members,
    }


def draw(chance: random.Random) -> Step:
    """The next step."""
    kind = chance.choices(
        ("heartbeat", "describe", "some_offsets", "list", "alter", "forget", "delete"),
        (60, 12, 4, 3, 4, 3, 3),
    )[0]
    return Step(kind, _FIELDS[kind](chance) if kind in _FIELDS else {})


def _heartbeat(chance: random.Random) -> dict[str, Any]:
    epoch = chance.choices((0, LEAVING, 1, -5), (25, 20, 55, 1))[0]
    ahead = chance.choices((0, -1, -3, 2), (80, 10, 5, 5))[0]
    topics: list[str] | None = None
    if epoch == 0 or chance.random() < 0.2:
        topics = chance.choice((["one"], ["two"], ["one", "two"], ["one", "nobodys"], []))
    elif chance.random() < 0.1:
        topics = []
    return {
        "member": chance.choice(MEMBERS) if chance.random() < 0.98 else "",
        "epoch": epoch,
        "ahead": ahead,
        "topics": topics,
    }


def _list(chance: random.Random) -> dict[str, Any]:
    return {
        "types": chance.choice(([], ["share"], ["Share", "classic"], ["consumer"])),
        "states": chance.choice(([], ["stable"], ["Empty"])),
    }


def _alter(chance: random.Random) -> dict[str, Any]:
    topics = chance.sample((*TOPICS, "nobodys"), chance.randint(1, 2))
    offsets = {0: chance.randint(0, 5), chance.choice((3, 9)): chance.randint(0, 5)}
    return {"topics": dict.fromkeys(topics, offsets)}


def _forget(chance: random.Random) -> dict[str, Any]:
    return {"topics": chance.sample((*TOPICS, "nobodys"), chance.randint(1, 3))}


_FIELDS = {"heartbeat": _heartbeat, "list": _list, "alter": _alter, "forget": _forget}
