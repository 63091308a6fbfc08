"""Drawn requests about one streams group, sent to two brokers, and what is the same of answers.

Where Apache Kafka's assignor goes by the order of a hash table, names are such that the order is
that of the alphabet. Members have ascending slots of 16. Processes share one slot of each smaller
table, in which `computeIfAbsent` puts the last one first: the members' processes descend.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from protocol.messages.metadata import MetadataRequest
from protocol.messages.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupEndpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupKeyValue,
    StreamsGroupTaskIds,
)
from tests.interop.coordinators.consumer_heartbeats import Side, Step
from tests.support.topologies import Topology, part, topology

if TYPE_CHECKING:
    import random

MEMBERS: Final = {"ay": "h", "bl": "h", "it": "X", "kw": "X", "mz": "P", "pn": "H"}
"""Members, and the process that each is a thread of."""
SOURCES: Final = {"one": 6, "two": 4}
MISSING_INTERNAL_TOPICS: Final = 3
CREATION_SECONDS: Final = 30.0
SETTLING_SECONDS: Final = 1.0
KINDS: Final = ("active", "standby", "warmup")

Beat = StreamsGroupHeartbeatRequest


@dataclass
class StreamsSide(Side):
    """A broker, and the answers to the members of its streams group."""

    tasks: dict[str, dict[str, dict[str, list[int]]]] = field(default_factory=dict)
    """Member, kind of task, subtopology, partitions."""
    endpoint_epochs: dict[str, int] = field(default_factory=dict)

    def _heartbeat(self, version: int, member: str, epoch: Any, owned: str, **said: Any) -> Any:
        known = self.epochs.get(member, 0)
        named = dict(said.pop("fields", {}))
        tasks = self._said(member, owned)
        request = Beat(
            group_id="g",
            member_id=member,
            member_epoch=known + epoch[1] if isinstance(epoch, tuple) else epoch,
            endpoint_information_epoch=self.endpoint_epochs.get(member, -1),
            **tasks,
            **said,
            **named,
        )
        answer = self.asks.ask(request, version)
        shown: dict[str, Any] = {
            name: getattr(answer, name)
            for name in ("error_code", "error_message", "member_epoch", "heartbeat_interval_ms")
        }
        shown["member"] = answer.member_id
        shown["status"] = [
            (each.status_code, sorted(each.status_detail.replace(",", "").split()))
            for each in answer.status or ()
        ]
        shown["tasks"] = {kind: _told(getattr(answer, f"{kind}_tasks")) for kind in KINDS}
        shown["endpoint epoch"] = answer.endpoint_information_epoch
        shown["endpoints"] = _endpoints(answer.partitions_by_user_endpoint)
        if not answer.error_code:
            self._take_over(member, request.member_epoch, answer, shown["tasks"])
            if isinstance(epoch, tuple) and owned in ("some", "none"):
                shown["tasks"] = None  # told again by ours, see GAPS.md
        return shown

    def _take_over(self, member: str, epoch: int, answer: Any, told: Any) -> None:
        self.epochs[member] = max(answer.member_epoch, 0)
        if epoch < 0:
            self.tasks.pop(member, None)
            self.endpoint_epochs.pop(member, None)
        else:
            self.endpoint_epochs[member] = answer.endpoint_information_epoch
            if told["active"] is not None:
                self.tasks[member] = told

    def _said(self, member: str, owned: str) -> dict[str, Any]:
        if owned == "silent":
            return {}
        told = self.tasks.get(member, {}) if owned in ("told", "some") else {}
        said: dict[str, Any] = {}
        for kind in KINDS:
            tasks = told.get(kind) or {}
            said[f"{kind}_tasks"] = [
                StreamsGroupTaskIds(
                    subtopology_id=name,
                    partitions=partitions[:1] if owned == "some" else partitions,
                )
                for name, partitions in tasks.items()
            ]
        if owned == "strange":
            said["active_tasks"] = [StreamsGroupTaskIds(subtopology_id="0", partitions=[99])]
        return said

    def _describe(self, version: int) -> Any:
        request = StreamsGroupDescribeRequest(
            group_ids=["g", "nobody"], include_authorized_operations=False
        )
        answer = self.asks.ask(request, version)
        return {group.group_id: _described_group(group) for group in answer.groups}

    def wait_for_topics(self, names: set[str]) -> None:
        """Wait until the broker has created topics."""
        deadline = time.monotonic() + CREATION_SECONDS
        while True:
            known = self.asks.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
            if names <= {each.name for each in known.topics if each.partitions}:
                return
            assert time.monotonic() < deadline, names
            time.sleep(0.05)


def _told(tasks: Any) -> dict[str, list[int]] | None:
    if tasks is None:
        return None
    return {each.subtopology_id: sorted(each.partitions) for each in tasks}


def _endpoints(told: Any) -> Any:
    if told is None:
        return None
    return sorted(
        (
            each.user_endpoint.host,
            each.user_endpoint.port,
            sorted((one.topic, sorted(one.partitions)) for one in each.active_partitions),
            sorted((one.topic, sorted(one.partitions)) for one in each.standby_partitions),
        )
        for each in told
    )


def _described_group(group: Any) -> Any:
    names = ("error_code", "error_message", "group_state", "group_epoch", "assignment_epoch")
    shown = {name: getattr(group, name) for name in names}
    if group.topology is not None:
        shown["topology"] = [group.topology.epoch, *map(repr, group.topology.subtopologies or ())]
    for member in group.members:
        fields = (
            *("member_epoch", "instance_id", "rack_id", "client_id", "client_host"),
            *("topology_epoch", "process_id", "is_classic", "task_offsets", "task_end_offsets"),
        )
        one = {name: getattr(member, name) for name in fields}
        endpoint = member.user_endpoint
        one["endpoint"] = None if endpoint is None else [endpoint.host, endpoint.port]
        one["tags"] = sorted((tag.key, tag.value) for tag in member.client_tags)
        for which in ("assignment", "target_assignment"):
            told = getattr(member, which)
            one[which] = {kind: _told(getattr(told, f"{kind}_tasks")) for kind in KINDS}
        shown[member.member_id] = one
    return shown


def missing_topics(answer: Any, prefix: str) -> set[str]:
    """The internal topics that are about to be created."""
    return {
        word
        for code, words in answer["status"]
        for word in words
        if code == MISSING_INTERNAL_TOPICS and word.startswith(prefix)
    }


def draw(chance: random.Random, kind: str, prefix: str) -> Step:
    """Draw a step of an application with a topology of some kind."""
    what = chance.choices(
        ("heartbeat", "commit", "fetch", "describe", "list", "classic", "delete"),
        (75, 8, 4, 6, 3, 1, 3),
    )[0]
    member = chance.choice(list(MEMBERS))
    if what == "heartbeat":
        return _draw_heartbeat(chance, member, kind, prefix)
    if what == "commit":
        topic = chance.choice(list(SOURCES))
        fields = {
            "member": member,
            "ahead": chance.choice((0, 0, 0, -1, -2, 1)),
            "topic": topic,
            "partition": chance.randrange(SOURCES[topic]),
        }
        return Step(what, fields, chance.choice((8, 9, 10, 10)))
    if what == "fetch":
        who = chance.choice((None, member, member))
        return Step(what, {"member": who, "ahead": chance.choice((0, 0, -1, 1))}, 9)
    if what == "list":
        states = chance.choice(([], ["stable"], ["Reconciling", "Empty"]))
        return Step(what, {"states": states, "types": chance.choice(([], ["streams"]))}, 5)
    return Step(what, {}, {"classic": 6, "delete": 2}.get(what, 0))


def joining(member: str, kind: str, prefix: str, epoch: int = 0) -> dict[str, Any]:
    """The fields of a heartbeat by which a member joins."""
    return {
        "member": member,
        "epoch": 0,
        "owned": "none",
        "rebalance_timeout_ms": 60_000,
        "topology": topology(kind, prefix, epoch),
        "process_id": MEMBERS[member],
    }


def _draw_heartbeat(chance: random.Random, member: str, kind: str, prefix: str) -> Step:
    action = chance.choices(
        ("join", "stay", "quiet", "some", "change", "wrong", "leave"), (25, 42, 5, 4, 6, 8, 10)
    )[0]
    fields: dict[str, Any] = {"member": member, "epoch": ("known", 0), "owned": "told"}
    if action == "join":
        fields = joining(member, kind, prefix)
        if chance.random() < 0.2 and kind not in ("uneven", "absent"):
            fields["user_endpoint"] = StreamsGroupEndpoint(host=member, port=9)
    elif action in ("quiet", "some"):
        fields["owned"] = "silent" if action == "quiet" else "some"
    elif action == "change":
        fields |= chance.choice(
            (
                {"rack_id": "rack"},
                {"client_tags": [StreamsGroupKeyValue(key="k", value=chance.choice("vw"))]},
                {"rebalance_timeout_ms": 50_000},
                {"process_id": MEMBERS[member]},
            )
        )
    elif action == "wrong":
        fields |= chance.choice(_wrong(member, kind, prefix))
    elif action == "leave":
        fields |= {"epoch": -1, "owned": "silent"}
        fields["shutdown_application"] = chance.random() < 0.1
    return Step("heartbeat", fields, 0)


def _wrong(member: str, kind: str, prefix: str) -> list[dict[str, Any]]:
    join = joining(member, kind, prefix)
    other = "stateless" if kind == "stateful" else "stateful"
    return [
        {"epoch": ("known", 1)},
        {"epoch": ("known", -1)},
        {"epoch": ("known", -1), "owned": "none"},
        {"epoch": -3},
        {"epoch": -2},
        {"member": ""},
        {"rack_id": " "},
        {"instance_id": "i"},
        {"owned": "strange"},
        {"epoch": ("known", 0), "owned": "silent", "active_tasks": []},
        {"topology": topology(kind, prefix)},
        {"shutdown_application": True},
        join | {"rebalance_timeout_ms": -1},
        join | {"owned": "strange"},
        join | {"topology": None},
        join | {"topology": topology(other, prefix)},
        join | {"topology": topology(other, prefix, 1)},
        join | {"topology": topology(kind, "__consumer_offsets\n")},
        join | {"topology": Topology(epoch=0, subtopologies=[part("0", ["__consumer_offsets"])])},
        join | {"topology": Topology(epoch=0, subtopologies=[part("0", [])])},
    ]
