"""Drawn requests of members of both protocols in one group, sent to two brokers."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocol.messages.consumer_offsets_records import GroupMetadataKey
from protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from tests.interop.coordinators.consumer_heartbeats import TOPICS, Side, Step, draw
from tests.interop.coordinators.test_consumer_group_logs import stored
from tests.interop.security.principals import Principal

if TYPE_CHECKING:
    import random

CLASSIC = ("P", "Q", "R", "X")
INSTANCES = {"R": "i", "X": "x"}
"""R has the instance of members G and H, so that their place changes its protocol."""
VERSION = 1
PROTOCOLS = ("range", "sticky")


@dataclass
class MixedSide(Side):
    """A broker, and the answers to members of either protocol."""

    port: int = 0
    log: Path = Path()
    """The segment of `__consumer_offsets` that the group is in."""
    read: int = 0
    """Records of it that were looked at."""
    ids: dict[str, str] = field(default_factory=dict)
    """Member ids of classic members; the broker makes those of static ones."""

    @property
    def written(self) -> list[tuple[int, bool]]:
        """The records since the last look: key types, and whether they forget; in no order.

        Without generations of classic groups, since Apache Kafka also stores that there is one.
        """
        every = [(int.from_bytes(key[:2], "big"), value is None) for key, value in stored(self.log)]
        new, self.read = every[self.read :], len(every)
        return sorted(one for one in new if one != (GroupMetadataKey.KEY_TYPE, False))

    def forget(self) -> None:
        """The group is gone."""
        self.epochs.clear()
        self.owned.clear()
        self.ids.clear()

    @property
    def kind(self) -> tuple[str, str]:
        """The type of the group and its state."""
        listed = self.take(Step("list", {"states": [], "types": []}, 5))
        return (listed[0][3], listed[0][2]) if listed else ("", "")

    def _heartbeat(self, version: int, member: str, epoch: Any, owned: str, **said: Any) -> Any:
        shown = super()._heartbeat(version, member, epoch, owned, **said)
        for name, member_id in self.ids.items():
            if shown["error_message"] is not None:
                shown["error_message"] = shown["error_message"].replace(member_id, name)
        return shown

    def _join(self, version: int, member: str, topics: list[str], owned: str) -> Any:
        return self._joined(member, self.asks.ask(self._joining(member, topics, owned), version))

    def _joining(self, member: str, topics: list[str], owned: str) -> JoinGroupRequest:
        kind = ConsumerProtocolSubscription.OwnedPartition
        told = self.owned.get(member, {}) if owned == "told" else {}
        subscription = ConsumerProtocolSubscription(
            topics=topics,
            owned_partitions=[kind(topic=name, partitions=told[name]) for name in told],
        )
        metadata = struct.pack(">h", VERSION) + subscription.encode(VERSION)
        instance_id = INSTANCES.get(member)
        return JoinGroupRequest(
            group_id="g",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self.ids.get(member, member if instance_id is None else ""),
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.Protocol(name=name, metadata=metadata) for name in PROTOCOLS
            ],
        )

    def _joined(self, member: str, answer: Any) -> Any:
        if not answer.error_code:
            self.ids[member] = answer.member_id
            self.epochs[member] = answer.generation_id
        return answer.error_code, answer.generation_id, answer.protocol_type, answer.protocol_name

    def _sync(self, version: int, member: str, ahead: int) -> Any:
        return self._synced(member, self.asks.ask(self._syncing(member, ahead), version))

    def _syncing(
        self, member: str, ahead: int, shares: dict[str, bytes] | None = None
    ) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id="g",
            generation_id=self.epochs.get(member, 0) + ahead,
            member_id=self.ids.get(member, member),
            group_instance_id=INSTANCES.get(member),
            protocol_type="consumer",
            protocol_name=PROTOCOLS[0],
            assignments=[
                SyncGroupRequest.Assignment(member_id=self.ids[name], assignment=share)
                for name, share in (shares or {}).items()
            ],
        )

    def _synced(self, member: str, answer: Any) -> Any:
        if answer.error_code:
            return answer.error_code
        read = ConsumerProtocolAssignment.decode_from(VERSION, answer.assignment, 2)[0]
        found = {one.topic: sorted(one.partitions) for one in read.assigned_partitions}
        self.owned[member] = {name: found[name] for name in TOPICS if name in found}
        return self.owned[member], answer.assignment[:2]

    def _beat(self, version: int, member: str, ahead: int) -> Any:
        request = HeartbeatRequest(
            group_id="g",
            generation_id=self.epochs.get(member, 0) + ahead,
            member_id=self.ids.get(member, member),
            group_instance_id=INSTANCES.get(member),
        )
        return self.asks.ask(request, version).error_code

    def _leave(self, version: int, members: list[str]) -> Any:
        kind = LeaveGroupRequest.Member
        request = LeaveGroupRequest(
            group_id="g",
            members=[
                kind(
                    member_id=self.ids.get(name, name),
                    group_instance_id=INSTANCES.get(name),
                )
                for name in members
            ],
        )
        answer = self.asks.ask(request, version)
        for name, one in zip(members, answer.members, strict=False):
            if not one.error_code:
                self.owned.pop(name, None)
                self.ids.pop(name, None)
        return answer.error_code, [one.error_code for one in answer.members]

    def rebalance(self, members: list[str]) -> Any:
        """Join all members of a classic group; its leader assigns the topics."""
        lines = {name: Principal(self.port) for name in members}
        try:
            with ThreadPoolExecutor(len(members)) as threads:
                asked = {
                    name: threads.submit(
                        lines[name].ask, self._joining(name, list(TOPICS), "told"), 7
                    )
                    for name in members
                }
                answers = {name: asked[name].result() for name in members}
                joined = [self._joined(name, answers[name]) for name in members]
                shares = {
                    name: _share(members.index(name), len(members))
                    for name in members
                    if not answers[name].error_code
                }
                synced = {}
                for name in members:
                    is_leader = answers[name].leader == answers[name].member_id
                    request = self._syncing(name, 0, shares if is_leader else None)
                    synced[name] = threads.submit(lines[name].ask, request, 5)
                return joined, [self._synced(name, synced[name].result()) for name in members]
        finally:
            for line in lines.values():
                line.close()

    def _described(self, group: Any, names: tuple[str, ...]) -> Any:
        known = {member_id: name for name, member_id in self.ids.items()}
        for member in group.members:
            member.member_id = known.get(member.member_id, member.member_id)
        return super()._described(group, names)


def _share(index: int, size: int) -> bytes:
    kind = ConsumerProtocolAssignment.AssignedPartition
    assigned = [
        kind(topic=name, partitions=list(range(index, count, size)))
        for name, count in TOPICS.items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return struct.pack(">h", VERSION) + message.encode(VERSION)


def draw_mixed(chance: random.Random, *, is_consumer_group: bool) -> Step:
    """Draw a step. No member joins a classic group alone: that would wait for the others."""
    if chance.random() < 0.5:
        step = draw(chance, "range")
        step.fields.pop("subscribed_topic_regex", None)
        return step
    member = chance.choice(CLASSIC)
    kinds = {"join": 40 if is_consumer_group else 0, "sync": 25, "beat": 25, "leave": 12}
    kind = chance.choices(tuple(kinds), tuple(kinds.values()))[0]
    if kind == "join":
        topics = chance.choice((["one"], ["one", "two"], ["one", "two"], ["two"], ["gone"]))
        fields = {"member": member, "topics": topics, "owned": chance.choice(("told", "none"))}
        return Step(kind, fields, chance.choice((5, 7, 9)))
    if kind == "leave":
        more = chance.sample((*CLASSIC, *"ABCDEFGH"), chance.choice((0, 1, 4, 8, 12)))
        return Step(kind, {"members": [member, *(one for one in more if one != member)]}, 5)
    ahead = chance.choice((0, 0, 0, 0, -1, 1))
    return Step(kind, {"member": member, "ahead": ahead}, 5 if kind == "sync" else 4)
