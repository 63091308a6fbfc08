"""Golden scripts: requests of group clients and, under each, what Apache Kafka 4 answered.

    # a comment
    join v9 group=g protocols=range:x
      => error_code=MEMBER_ID_REQUIRED generation_id=-1 member_id=M1
    join v9 group=g member=M1 protocols=range:x as=first      (not waited for)
    wait first
      => generation_id=1 ...

Fields with an empty or default value are left out, lists are in order of their text, and member ids
are called M1, M2... as they appear. `replay` runs a script and returns it with the answers that
were given. The scripts run against our broker in memory here, over sockets in `tests/interop`, and
there against Apache with AGAINST=apache.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from protocol.errors import ErrorCode
from protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetDeleteRequest, OffsetFetchRequest
from protocol.schema import Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from protocol.schema import Request

Words = dict[str, str]

MEMBER_ID = re.compile(r"[\w.-]+?-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
DEFAULTS: tuple[object, ...] = (None, "", b"", 0, False, [], ZERO_UUID, -(2**31))
NEW_GROUPS_SINCE = 8


class Client(Protocol):
    """A broker that can be asked; `label` names a request whose answer is taken later."""

    async def ask(self, request: Request, version: int) -> Any:
        """Send and wait."""

    async def send(self, label: str, request: Request, version: int) -> None:
        """Send on a connection of its own."""

    async def wait(self, label: str) -> Any:
        """The answer to what was sent under `label`."""


class Script:
    """One run of a script against one broker."""

    def __init__(self, peer: Client, topic_ids: Mapping[str, UUID]) -> None:
        self._peer = peer
        self._topic_ids = topic_ids
        self._members: dict[str, str] = {}

    async def replay(self, text: str) -> str:
        """Run all requests of `text`; returns it with the answers that were given."""
        said: list[str] = []
        for line in text.splitlines():
            if line.startswith("  =>"):
                continue
            said.append(line)
            if line and not line.startswith("#"):
                answer = await self._step(line)
                if answer is not None:
                    said.append(f"  => {self._shown(answer)}".rstrip())
        return "\n".join(said) + "\n"

    async def _step(self, line: str) -> Any:
        verb, *rest = line.split()
        if verb == "wait":
            return await self._peer.wait(rest[0])
        version = int(rest[0].removeprefix("v"))
        words = {key: self._known(value) for key, _, value in (w.partition("=") for w in rest[1:])}
        label = words.pop("as", None)
        request = self._request(verb, words, version)
        if label is None:
            return await self._peer.ask(request, version)
        await self._peer.send(label, request, version)
        return None

    def _request(self, verb: str, words: Words, version: int) -> Request:
        makers: dict[str, Callable[[], Request]] = {
            "join": lambda: join(words),
            "sync": lambda: sync(words),
            "heartbeat": lambda: HeartbeatRequest(**_member(words)),
            "leave": lambda: leave(words),
            "commit": lambda: commit(words, self._topic_ids),
            "fetch": lambda: fetch(words, version, self._topic_ids),
            "delete-offsets": lambda: delete_offsets(words),
            "list": lambda: ListGroupsRequest(
                states_filter=_list(words, "states"), types_filter=_list(words, "types")
            ),
            "describe": lambda: DescribeGroupsRequest(
                groups=_list(words, "groups"), include_authorized_operations="ops" in words
            ),
            "delete": lambda: DeleteGroupsRequest(groups_names=_list(words, "groups")),
        }
        return makers[verb]()

    def _known(self, text: str) -> str:
        """Put the real member ids for M1, M2..."""
        return re.sub(r"\bM\d+\b", lambda found: self._members[found.group()], text)

    def _shown(self, answer: Struct) -> str:
        text = shown(answer, lambda leaf: MEMBER_ID.sub(self._label, leaf))
        names = {str(topic_id): name for name, topic_id in self._topic_ids.items()}
        return re.sub(r"topic_id=([0-9a-f-]+)", lambda m: f"topic_id={names.get(m[1], m[1])}", text)

    def _label(self, found: re.Match[str]) -> str:
        member_id = found.group()
        for label, known in self._members.items():
            if known == member_id:
                return label
        label = f"M{len(self._members) + 1}"
        self._members[label] = member_id
        return label


def shown(value: object, label: Callable[[str], str], name: str = "") -> str:
    """A response as text; see the module's docstring. `label` is applied to each text in it."""
    if name == "error_code":
        return ErrorCode(value).name  # type: ignore[arg-type]
    if isinstance(value, Struct):
        parts = [
            f"{field.name}={shown(getattr(value, field.name), label, field.name)}"
            for field in value.FIELDS
            if getattr(value, field.name) not in DEFAULTS
        ]
        return " ".join(parts)
    if isinstance(value, list):
        return "[" + "; ".join(sorted(shown(each, label) for each in value)) + "]"
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return label(str(value))


def join(words: Words) -> JoinGroupRequest:
    protocols = [each.partition(":") for each in words.get("protocols", "range:x").split(",")]
    return JoinGroupRequest(
        group_id=words.get("group", ""),
        session_timeout_ms=int(words.get("session", "30000")),
        rebalance_timeout_ms=int(words.get("rebalance", "30000")),
        member_id=words.get("member", ""),
        group_instance_id=words.get("instance"),
        protocol_type=words.get("type", "consumer"),
        protocols=[
            JoinGroupRequest.Protocol(name=name, metadata=metadata.encode())
            for name, _, metadata in protocols
            if name
        ],
    )


def sync(words: Words) -> SyncGroupRequest:
    parts = [each.partition(":") for each in _list(words, "assign")]
    return SyncGroupRequest(
        **_member(words),
        protocol_type=words.get("type", "consumer"),
        protocol_name=words.get("name", "range"),
        assignments=[
            SyncGroupRequest.Assignment(member_id=member, assignment=part.encode())
            for member, _, part in parts
        ],
    )


def leave(words: Words) -> LeaveGroupRequest:
    members = [each.partition("/") for each in words["members"].split(",")]
    return LeaveGroupRequest(
        group_id=words.get("group", ""),
        member_id=members[0][0],
        members=[
            LeaveGroupRequest.Member(member_id=member, group_instance_id=instance or None)
            for member, _, instance in members
        ],
    )


def commit(words: Words, topic_ids: Mapping[str, UUID]) -> OffsetCommitRequest:
    topic = words.get("topic", "flights")
    positions = [each.split(":") for each in words["offsets"].split(",")]
    return OffsetCommitRequest(
        group_id=words.get("group", ""),
        generation_id_or_member_epoch=int(words.get("generation", "-1")),
        member_id=words.get("member", ""),
        group_instance_id=words.get("instance"),
        topics=[
            OffsetCommitRequest.Topic(
                name=topic,
                topic_id=topic_ids.get(topic, ZERO_UUID),
                partitions=[
                    OffsetCommitRequest.Topic.Partition(
                        partition_index=int(partition),
                        committed_offset=int(offset),
                        committed_leader_epoch=3,
                        committed_metadata=rest[0] if rest else None,
                    )
                    for partition, offset, *rest in positions
                ],
            )
        ],
    )


def fetch(words: Words, version: int, topic_ids: Mapping[str, UUID]) -> OffsetFetchRequest:
    """`partitions=0,1 [topic=name]` of one group, or all of it; several groups from version 8."""
    topic = words.get("topic", "flights")
    indexes = [int(each) for each in _list(words, "partitions")]
    if version < NEW_GROUPS_SINCE:
        named = OffsetFetchRequest.Topic(name=topic, partition_indexes=indexes)
        return OffsetFetchRequest(
            group_id=words.get("group", ""), topics=[named] if indexes else None
        )
    wanted = OffsetFetchRequest.Group.Topic(
        name=topic, topic_id=topic_ids.get(topic, ZERO_UUID), partition_indexes=indexes
    )
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequest.Group(group_id=group, topics=[wanted] if indexes else None)
            for group in words.get("group", "").split(",")
        ]
    )


def delete_offsets(words: Words) -> OffsetDeleteRequest:
    partitions = [
        OffsetDeleteRequest.Topic.Partition(partition_index=int(each))
        for each in words["partitions"].split(",")
    ]
    topic = OffsetDeleteRequest.Topic(name=words.get("topic", "flights"), partitions=partitions)
    return OffsetDeleteRequest(group_id=words.get("group", ""), topics=[topic])


def _member(words: Words) -> dict[str, Any]:
    return {
        "group_id": words.get("group", ""),
        "generation_id": int(words.get("generation", "1")),
        "member_id": words.get("member", ""),
        "group_instance_id": words.get("instance"),
    }


def _list(words: Words, key: str) -> list[str]:
    return [each for each in words.get(key, "").split(",") if each]
