"""Drawn share fetches and acknowledgements of two brokers, and what is the same of answers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from protocol.messages.share_group_state import (
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ShareStateQuestion,
)
from protocol.messages.topics import CreateTopicsRequest
from protocol.records.batch import iterate_headers
from protocol.records.builder import NewRecord, build_batch
from protocol.uuids import to_base64

if TYPE_CHECKING:
    import random
    from uuid import UUID

    from tests.interop.security.principals import Principal

TOPIC = "shared"
BATCHES = (7, 1, 12, 3, 3, 20, 1, 1, 5, 30, 2, 9, 40, 1, 15)
"""Records in each batch of the topic."""
MEMBERS = ("A", "B", "C")
FIRST_MEMBER = "first"
OPENING, CLOSING = 0, -1
FINISHED = {2, 4}
"""States of records that are acknowledged or archived."""
SHARE_KEY = 2
PASSING = {14, 15, 16, 3}
"""Codes of coordinators that are not ready, and of a topic that they have not heard of."""
START_SECONDS = 60
RELEASE_SECONDS = 0.2
"""Time for a member's acquired records to be released after the answer to its last request."""
SHARES = 0.75

Ack = tuple[int, int, list[int]]


class Step(NamedTuple):
    """A drawn request."""

    kind: str
    member: str
    acks: list[Ack]
    max_records: int = 0
    batch_size: int = 0
    mode: int = 0
    epoch: int | None = None
    """Instead of the next."""


@dataclass
class Side:
    """A broker, and the state of its members' sessions."""

    asks: Principal
    topic_id: UUID
    group: str = ""
    epochs: dict[str, int] = field(default_factory=dict)

    def begin(self, group: str) -> None:
        """A group that has consumed nothing."""
        self.group = group
        self.epochs.clear()
        key = f"{group}:{to_base64(self.topic_id)}:0"
        coordinator = FindCoordinatorRequest(key_type=SHARE_KEY, coordinator_keys=[key])
        deadline = time.monotonic() + START_SECONDS
        while self.asks.ask(coordinator, 6).coordinators[0].error_code:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        kind = InitializeShareGroupStateRequest.Topic
        partition = kind.Partition(partition=0, state_epoch=1, start_offset=0)
        topic = kind(topic_id=self.topic_id, partitions=[partition])
        request = InitializeShareGroupStateRequest(group_id=group, topics=[topic])
        while (code := self.asks.ask(request, 0).results[0].partitions[0].error_code) in PASSING:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert code == ErrorCode.NONE
        self._load()

    def _load(self) -> None:
        """Make the leader read the state, which a fetch that does not wait would not see.

        The session stays, as the leader forgets a group without any, each make when it likes.
        """
        first = Step("fetch", FIRST_MEMBER, [], max_records=1, mode=1)
        code, parts = self.fetch(first, OPENING, max_wait_ms=10_000)
        assert (code, parts[0][2]) == (ErrorCode.NONE, {0: 1})
        self.take(Step("acknowledge", FIRST_MEMBER, [(0, 0, [1])]))

    def take(self, step: Step) -> Any:
        """Send a step; returns what shall be the same."""
        epoch = self.epochs.get(step.member, OPENING) if step.epoch is None else step.epoch
        answer = self.fetch(step, epoch) if step.kind == "fetch" else self._acknowledge(step, epoch)
        if epoch == CLOSING:
            time.sleep(RELEASE_SECONDS)
        return answer

    def stored(self) -> dict[int, tuple[int, int]]:
        """Delivery count and state of what is stored, by offset, from what is not finished on.

        What is finished at the beginning is stored by itself, or by the start offset: one that
        has passed records whose locks expired for the last time is stored later by Apache Kafka.
        """
        kind = ShareStateQuestion
        topic = kind(
            topic_id=self.topic_id, partitions=[kind.Partition(partition=0, leader_epoch=0)]
        )
        request = ReadShareGroupStateRequest(group_id=self.group, topics=[topic])
        state = self.asks.ask(request, 0).results[0].partitions[0]
        by_offset = {
            offset: (batch.delivery_count, batch.delivery_state)
            for batch in state.state_batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        begin = state.start_offset
        while begin in by_offset and by_offset[begin][1] in FINISHED:
            begin += 1
        return {offset: stored for offset, stored in by_offset.items() if offset >= begin}

    def fetch(self, step: Step, epoch: int, max_wait_ms: int = 0) -> Any:
        """Send a fetch of this epoch; returns what shall be the same."""
        kind = ShareFetchRequest.Topic.Partition
        batches = [
            kind.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in step.acks
        ]
        partition = kind(partition_index=0, acknowledgement_batches=batches)
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=step.member,
            share_session_epoch=epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=step.max_records,
            batch_size=step.batch_size,
            share_acquire_mode=step.mode,
            topics=[ShareFetchRequest.Topic(topic_id=self.topic_id, partitions=[partition])],
            forgotten_topics_data=[],
        )
        answer = self.asks.ask(request, 2)
        self._note(step, epoch, answer.error_code)
        parts = [part for topic in answer.responses for part in topic.partitions]
        return answer.error_code, [_seen(part) for part in parts if _is_news(part)]

    def _acknowledge(self, step: Step, epoch: int) -> Any:
        kind = ShareAcknowledgeRequest.Topic.Partition
        batches = [
            kind.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in step.acks
        ]
        partition = kind(partition_index=0, acknowledgement_batches=batches)
        topic = ShareAcknowledgeRequest.Topic(topic_id=self.topic_id, partitions=[partition])
        request = ShareAcknowledgeRequest(
            group_id=self.group, member_id=step.member, share_session_epoch=epoch, topics=[topic]
        )
        answer = self.asks.ask(request, 2)
        self._note(step, epoch, answer.error_code)
        parts = [part for topic in answer.responses for part in topic.partitions]
        return answer.error_code, [part.error_code for part in parts]

    def _note(self, step: Step, epoch: int, code: int) -> None:
        if code == ErrorCode.NONE:
            self.epochs[step.member] = OPENING if epoch == CLOSING else epoch + 1
        elif code == ErrorCode.SHARE_SESSION_NOT_FOUND:
            self.epochs.pop(step.member, None)


def _is_news(part: Any) -> bool:
    """Return whether an answer's partition carries news; brokers differ in which they leave out."""
    return bool(part.error_code or part.acknowledge_error_code or part.acquired_records)


def _seen(part: Any) -> Any:
    counts = {
        offset: one.delivery_count
        for one in part.acquired_records
        for offset in range(one.first_offset, one.last_offset + 1)
    }
    firsts = [header.base_offset for _, header in iterate_headers(bytes(part.records or b""))]
    return part.error_code, part.acknowledge_error_code, counts, firsts


def create_topic(client: Principal) -> UUID:
    """The topic with its records; returns its id."""
    kind = CreateTopicsRequest.Topic
    forever = kind.Config(name="retention.ms", value="-1")
    topic = kind(
        name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[forever]
    )
    client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    deadline = time.monotonic() + START_SECONDS
    for count in BATCHES:
        batch = bytes(build_batch([NewRecord(0, b"k", b"v") for _ in range(count)]))
        while _produce(client, batch):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    wanted = MetadataRequest(topics=[MetadataRequest.Topic(name=TOPIC)])
    topic_id: UUID = client.ask(wanted, 12).topics[0].topic_id
    return topic_id


def _produce(client: Principal, batch: bytes) -> int:
    data = ProduceRequest.TopicData.PartitionData(index=0, records=batch)
    topic = ProduceRequest.TopicData(name=TOPIC, partition_data=[data])
    answer = client.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]), 9)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def draw(chance: random.Random, held: dict[str, dict[int, int]]) -> Step:
    """A step, most often about records that the member holds."""
    member = chance.choice(MEMBERS)
    kind = chance.choice(("fetch", "fetch", "acknowledge"))
    theirs = sorted(held.get(member, {}))
    acks = _acks(chance, theirs) if theirs and chance.random() < SHARES else []
    if kind == "acknowledge" and not acks:
        first = chance.randrange(80)
        acks = [(first, first + chance.randrange(12), [chance.randrange(4)])]
    epoch = chance.choice((CLOSING, 99)) if chance.random() < 0.06 else None
    return Step(
        kind,
        member,
        acks,
        # Apache Kafka fetches while it stores, so what was just released comes next time, or not.
        max_records=0 if acks else chance.choice((1, 4, 10, 60)),
        batch_size=chance.choice((1, 5, 500)),
        mode=chance.choice((0, 0, 1)),
        epoch=epoch,
    )


def _acks(chance: random.Random, theirs: list[int]) -> list[Ack]:
    """Acknowledgements of some of the records that a member holds, in order."""
    acks: list[Ack] = []
    position = 0
    while position < len(theirs) and len(acks) < 4:
        first = last = theirs[position]
        length = chance.randrange(1, 15)
        while last + 1 in theirs and last - first + 1 < length:
            last += 1
        if chance.random() < 0.3:
            types = [chance.randrange(4) for _ in range(last - first + 1)]
        else:
            types = [chance.choice((1, 2, 2, 2, 3))]
        acks.append((first, last, types))
        position = theirs.index(last) + 1 + chance.randrange(3)
    return acks
