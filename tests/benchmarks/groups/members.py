"""Members of consumer groups (KIP-848) by the thousand, on one event loop and few connections.

Each does what Apache Kafka's consumer does and nothing else: it joins, sends a heartbeat whenever
the interval is over that the coordinator names, and takes what it is assigned at once, which it
says in another heartbeat. An answer that says nothing new is recognised by its bytes, so that a
member costs next to nothing beside the coordinator.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from protocol.errors import ErrorCode
from protocol.headers import request_front, response_header_bytes
from protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

CONNECTIONS = 200
"""Members share them: a connection has one request answered after the other."""
VERSION = 1
KEY = ConsumerGroupHeartbeatRequest.API_KEY
HEADER_BYTES = response_header_bytes(KEY, VERSION)
CLIENT_ID = b"member"
SIZE_BYTES = 4
JOINING, LEAVING = 0, -1
REBALANCE_TIMEOUT_MS = 300_000
BACKOFF_SECONDS = 0.1
POLL_SECONDS = 0.05
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@dataclass(slots=True, eq=False)
class Member:
    """One member, as it knows itself."""

    number: int
    """By which its answers are recognised: the correlation id of all its requests."""
    group: str
    topics: Sequence[str]
    epoch: int = JOINING
    owned: dict[UUID, list[int]] = field(default_factory=dict)
    idle_frame: bytes = b""
    """The heartbeat that says nothing new."""
    idle_answer: bytes = b""
    """Answer to it."""
    interval_seconds: float = 0.0
    timer: asyncio.TimerHandle | None = None

    @property
    def member_id(self) -> str:
        """Chosen by the client."""
        return f"member-{self.number:06}"

    def frame(self, epoch: int, **said: Any) -> bytes:
        """A heartbeat, ready to be sent."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, **said
        )
        body = request.encode(VERSION)
        return request_front(self.number, KEY, VERSION, CLIENT_ID, len(body)) + body

    def joining(self) -> bytes:
        """The first heartbeat."""
        return self.frame(
            JOINING,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=list(self.topics),
            topic_partitions=[],
        )

    def owning(self) -> bytes:
        """The heartbeat after partitions were taken or given up."""
        owned = [
            TopicPartitions(topic_id=topic, partitions=each) for topic, each in self.owned.items()
        ]
        return self.frame(self.epoch, topic_partitions=owned)


class Link(asyncio.Protocol):
    """One connection of some members."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._crowd.fail(exc or ConnectionError("the broker has hung up"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        begin, received = 0, self._received
        while len(received) >= begin + SIZE_BYTES:
            end = begin + SIZE_BYTES + int.from_bytes(received[begin : begin + SIZE_BYTES], "big")
            if len(received) < end:
                break
            self._crowd.answered(bytes(received[begin + SIZE_BYTES : end]))
            begin = end
        del received[:begin]

    def send(self, frame: bytes) -> None:
        """Send one request; others may be under way."""
        assert self._transport is not None
        self._transport.write(frame)

    def close(self) -> None:
        """Hang up."""
        assert self._transport is not None
        self._transport.abort()


class Crowd:
    """All members of one broker's groups; they act only while `run` does."""

    def __init__(self, port: int, connections: int = CONNECTIONS) -> None:
        self.members: dict[int, Member] = {}
        self.heartbeats = 0
        """Answered so far."""
        self._made = 0
        self._failure: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._links = [self._connected(port) for _ in range(connections)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._failure = self._failure or ConnectionError("closed")
        for link in self._links:
            link.close()
        self.run(0)
        self._loop.close()

    def _connected(self, port: int) -> Link:
        opening = self._loop.create_connection(lambda: Link(self), "127.0.0.1", port)
        _, link = self._loop.run_until_complete(opening)
        return link

    def run(self, seconds: float) -> None:
        """Have the members go on for so long."""
        self._loop.call_later(seconds, self._loop.stop)
        self._loop.run_forever()

    def run_until(self, is_due: Callable[[], bool], seconds: float) -> float:
        """Have them go on until something is so; returns after how many seconds it was."""
        began = time.perf_counter()
        while not is_due():
            self.run(POLL_SECONDS)
            if self._failure is not None:
                raise self._failure
            if time.perf_counter() > began + seconds:
                raise TimeoutError(f"not within {seconds} s")
        return time.perf_counter() - began

    def join(self, group: str, topics: Sequence[str], count: int) -> None:
        """Have so many new members join a group, all at once."""
        for _ in range(count):
            member = Member(self._made, group, topics)
            self._made += 1
            self.members[member.number] = member
            self._send(member, member.joining())

    def leave(self, members: Iterable[Member]) -> None:
        """Have members leave, all at once; nobody waits for the answers."""
        for member in members:
            del self.members[member.number]
            if member.timer is not None:
                member.timer.cancel()
            self._send(member, member.frame(LEAVING))

    def fail(self, error: BaseException) -> None:
        """Keep the first thing that went wrong."""
        self._failure = self._failure or error

    def have_all(self, partitions: int) -> bool:
        """Return whether each group's members, in one epoch, own all partitions, each once."""
        epochs: dict[str, int] = {}
        owned: dict[str, int] = {}
        for member in self.members.values():
            if epochs.setdefault(member.group, member.epoch) != member.epoch or not member.epoch:
                return False
            count = sum(map(len, member.owned.values()))
            owned[member.group] = owned.get(member.group, 0) + count
        return all(count == partitions for count in owned.values())

    def answered(self, frame: bytes) -> None:
        """Take an answer, without its size."""
        member = self.members.get(int.from_bytes(frame[:4], "big"))
        self.heartbeats += 1
        if member is None:  # it has left
            return
        if frame == member.idle_answer:
            self._rest(member, member.interval_seconds)
            return
        answer = ConsumerGroupHeartbeatResponse.decode(VERSION, frame[HEADER_BYTES:])
        if answer.error_code in NOT_YET:
            self._rest(member, BACKOFF_SECONDS)
        elif answer.error_code:
            self.fail(AssertionError(f"{member}: {answer}"))
        else:
            self._told(member, answer, frame)

    def _told(self, member: Member, answer: ConsumerGroupHeartbeatResponse, frame: bytes) -> None:
        if answer.member_epoch != member.epoch:
            member.epoch = answer.member_epoch
            member.idle_frame = member.frame(member.epoch)
        member.interval_seconds = answer.heartbeat_interval_ms / 1000
        if answer.assignment is None:
            member.idle_answer = frame
            self._rest(member, member.interval_seconds)
            return
        topics = answer.assignment.topic_partitions
        member.owned = {topic.topic_id: topic.partitions for topic in topics}
        self._send(member, member.owning())

    def _rest(self, member: Member, seconds: float) -> None:
        member.timer = self._loop.call_later(seconds, self._beat, member)

    def _beat(self, member: Member) -> None:
        self._send(member, member.idle_frame or member.joining())

    def _send(self, member: Member, frame: bytes) -> None:
        self._links[member.number % len(self._links)].send(frame)
