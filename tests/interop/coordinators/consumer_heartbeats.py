"""Drawn requests about one consumer group, sent to two brokers, and what is the same of answers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from protocol.errors import ErrorCode
from protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest

if TYPE_CHECKING:
    import random
    from uuid import UUID

    from protocol.schema import Request
    from tests.interop.security.principals import Principal

TOPICS = {"one": 6, "two": 4}
MEMBERS = "ABCDEFGH"
"""Java's hash tables have them in this order, by which `uniform` goes."""
INSTANCES = ("i", "j")
REGEX_SECONDS = 0.2
USING_REGEX = 0.3
LEAVING, RESTING = -1, -2

Beat = ConsumerGroupHeartbeatRequest


class Step(NamedTuple):
    """A drawn request: topics by name."""

    kind: str
    fields: dict[str, Any]
    version: int = 1


@dataclass
class Side:
    """A broker, and the answers to its members."""

    asks: Principal
    topics: dict[str, UUID]
    epochs: dict[str, int] = field(default_factory=dict)
    owned: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def take(self, step: Step) -> Any:
        """Send a step; returns what shall be the same."""
        return getattr(self, f"_{step.kind}")(**step.fields, version=step.version)

    def _heartbeat(self, version: int, member: str, epoch: Any, owned: str, **said: Any) -> Any:
        known = self.epochs.get(member, 0)
        told = self.owned.get(member, {})
        request = Beat(
            group_id="g",
            member_id=member,
            member_epoch=known + epoch[1] if isinstance(epoch, tuple) else epoch,
            topic_partitions=self._partitions(told, owned),
            **said,
        )
        answer = self.asks.ask(request, version)
        shown = _shown(answer, ("error_code", "error_message", "member_epoch"))
        shown["interval"] = answer.heartbeat_interval_ms
        shown["member"] = answer.member_id
        if answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION:
            shown["error_message"] = answer.error_message.partition(":")[0]  # RE2's words follow
        if answer.assignment is not None:
            shown["assignment"] = self._named(answer.assignment.topic_partitions)
        if not answer.error_code:
            self.epochs[member] = max(answer.member_epoch, 0)
            if answer.assignment is not None:
                self.owned[member] = shown["assignment"]
            if request.member_epoch < 0:
                self.owned.pop(member, None)
        return shown

    def _partitions(self, told: dict[str, list[int]], owned: str) -> Any:
        if owned == "silent":
            return None
        if owned == "none":
            return []
        return [TopicPartitions(topic_id=self.topics[name], partitions=told[name]) for name in told]

    def _commit(self, version: int, member: str, ahead: int, topic: str, partition: int) -> Any:
        kind = OffsetCommitRequest.Topic
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=self.epochs.get(member, 0) + ahead,
            member_id=member,
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[
                kind(
                    name=topic,
                    topic_id=self.topics[topic],
                    partitions=[
                        kind.Partition(
                            partition_index=partition, committed_offset=7, committed_metadata=""
                        )
                    ],
                )
            ],
        )
        answer = self.asks.ask(request, version)
        return [each.error_code for one in answer.topics for each in one.partitions]

    def _fetch(self, version: int, member: str | None, ahead: int) -> Any:
        group = OffsetFetchRequest.Group(
            group_id="g",
            member_id=member,
            member_epoch=-1 if member is None else self.epochs.get(member, 0) + ahead,
            topics=[OffsetFetchRequest.Group.Topic(name="one", partition_indexes=[0, 1])],
        )
        answer = self.asks.ask(OffsetFetchRequest(groups=[group], require_stable=False), version)
        [one] = answer.groups
        found = [(e.committed_offset, e.error_code) for t in one.topics for e in t.partitions]
        return one.error_code, found

    def _describe(self, version: int) -> Any:
        request = ConsumerGroupDescribeRequest(
            group_ids=["g", "nobody"], include_authorized_operations=False
        )
        answer = self.asks.ask(request, version)
        names = ("error_code", "error_message", "group_state", "group_epoch", "assignment_epoch")
        return {
            one.group_id: self._described(one, (*names, "assignor_name")) for one in answer.groups
        }

    def _described(self, group: Any, names: tuple[str, ...]) -> Any:
        shown = _shown(group, names)
        for member in group.members:
            one = _shown(
                member,
                ("instance_id", "rack_id", "member_epoch", "client_id", "client_host"),
            )
            one["names"] = sorted(member.subscribed_topic_names)
            one["regex"] = member.subscribed_topic_regex
            one["type"] = member.member_type
            one["assignment"] = self._named(member.assignment.topic_partitions)
            one["target"] = self._named(member.target_assignment.topic_partitions)
            shown[member.member_id] = one
        return shown

    def _list(self, version: int, states: list[str], types: list[str]) -> Any:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        answer = self.asks.ask(request, version)
        return sorted(
            (one.group_id, one.protocol_type, one.group_state, one.group_type)
            for one in answer.groups
        )

    def _classic(self, version: int) -> Any:
        request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=False)
        [one] = self.asks.ask(request, version).groups
        return _shown(one, ("error_code", "error_message", "group_state", "protocol_type"))

    def _delete(self, version: int) -> Any:
        [one] = self.asks.ask(DeleteGroupsRequest(groups_names=["g"]), version).results
        return one.error_code

    def _named(self, told: Any) -> dict[str, list[int]]:
        names = {topic_id: name for name, topic_id in self.topics.items()}
        return {names[one.topic_id]: sorted(one.partitions) for one in told}


def _shown(answer: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in names}


def create_topics(asks: Principal, *, by_java_hash: bool) -> dict[str, UUID]:
    """Create the topics, again and again until the broker's assignor takes them in our order."""
    while True:
        new = CreateTopicsRequest.Topic
        request: Request = CreateTopicsRequest(
            topics=[
                new(name=name, num_partitions=n, replication_factor=1, assignments=[], configs=[])
                for name, n in TOPICS.items()
            ],
            timeout_ms=30_000,
            validate_only=False,
        )
        asks.ask(request, 5)
        ids: dict[str, UUID] = {}
        while len(ids) < len(TOPICS):
            known = asks.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
            ids = {t.name: t.topic_id for t in known.topics if t.name in TOPICS and t.partitions}
        places = [_bucket(ids[name]) if by_java_hash else ids[name].int for name in TOPICS]
        if places[0] < places[1]:
            return ids
        kind = DeleteTopicsRequest.Topic
        gone = [kind(name=None, topic_id=each) for each in ids.values()]
        asks.ask(DeleteTopicsRequest(topics=gone, topic_names=[], timeout_ms=30_000), 6)
        time.sleep(0.2)


def _bucket(topic_id: UUID) -> int:
    """Return its bucket in a `java.util.HashMap` of sixteen buckets."""
    both = (topic_id.int >> 64) ^ (topic_id.int & (1 << 64) - 1)
    value = (both ^ both >> 32) & 0xFFFF_FFFF
    return (value ^ value >> 16) & 15


def draw(chance: random.Random, assignor: str) -> Step:
    """Draw a step. Members prefer one assignor, or none: which of two wins a tie is chance."""
    kind = chance.choices(
        ("heartbeat", "commit", "fetch", "describe", "list", "classic", "delete"),
        (70, 8, 5, 8, 3, 2, 4),
    )[0]
    member = chance.choice(MEMBERS)
    if kind == "heartbeat":
        return _draw_heartbeat(chance, member, assignor)
    if kind == "commit":
        topic = chance.choice(list(TOPICS))
        fields = {
            "member": member,
            "ahead": chance.choice((0, 0, 0, -1, -2, 1)),
            "topic": topic,
            "partition": chance.randrange(TOPICS[topic]),
        }
        return Step(kind, fields, chance.choice((8, 9, 10, 10)))
    if kind == "fetch":
        who = chance.choice((None, member, member))
        return Step(kind, {"member": who, "ahead": chance.choice((0, 0, -1, 1))}, 9)
    if kind == "list":
        states = chance.choice(([], ["stable"], ["Reconciling", "Empty"]))
        return Step(kind, {"states": states, "types": chance.choice(([], ["consumer"]))}, 5)
    return Step(kind, {}, {"classic": 6, "delete": 2}.get(kind, 1))


def _draw_heartbeat(chance: random.Random, member: str, assignor: str) -> Step:
    fields: dict[str, Any] = {"member": member}
    instance = {"G": "i", "H": "i", "F": "j"}.get(member)
    if instance is not None:
        fields["instance_id"] = instance
    action = chance.choices(
        ("join", "stay", "quiet", "change", "wrong", "leave", "rest", "full"),
        (22, 40, 6, 8, 6, 6, 6 if instance else 0, 6),
    )[0]
    fields |= {"epoch": ("known", 0), "owned": "told"}
    if action in ("join", "full", "change"):
        fields |= _draw_subscription(chance)
    if action in ("join", "full"):
        fields["rebalance_timeout_ms"] = 60_000
        fields["server_assignor"] = chance.choice((None, assignor))
    if action == "join":
        fields |= {"epoch": 0, "owned": "none"}
        fields["rack_id"] = chance.choice((None, "rack"))
    elif action == "quiet":
        fields["owned"] = "silent"
    elif action == "wrong":
        fields |= chance.choice(
            (
                {"epoch": ("known", 1)},
                {"epoch": ("known", -1)},
                {"epoch": ("known", -1), "owned": "none"},
                {"epoch": 0, "owned": "none"},
                {"epoch": 0, "rebalance_timeout_ms": 1, "owned": "silent"},
                {"epoch": -3},
                {"epoch": RESTING},
                {"server_assignor": "mine"},
                {"instance_id": "unknown"},
                {"rack_id": " "},
                {"member": ""},
            )
        )
    elif action in ("leave", "rest"):
        fields["epoch"] = LEAVING if action == "leave" else RESTING
        fields["owned"] = "silent"
    return Step("heartbeat", fields)


def _draw_subscription(chance: random.Random) -> dict[str, Any]:
    names = chance.choice((["one"], ["one", "two"], ["two"], ["one", "two"], ["one", "gone"], []))
    subscription: dict[str, Any] = {"subscribed_topic_names": names}
    if chance.random() < USING_REGEX:
        subscription["subscribed_topic_regex"] = chance.choice(("on.*", "t.o", "none", "", "(x"))
    return subscription
