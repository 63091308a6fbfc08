"""Records that one member of a share group holds, so that their memory can be told."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from protocol.messages.share_groups import ShareGroupHeartbeatRequest
from protocol.records.builder import NewRecord, build_batch
from tests.interop.security.principals import Principal

if TYPE_CHECKING:
    from uuid import UUID

    from tests.support.brokers.broker_process import BrokerProcess

GROUP_SECONDS = 120.0
POLL_SECONDS = 0.1
BATCH_RECORDS = 10
RELEASE = 2
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
NOW_MS = 1_795_229_963_000
SETTLED_SECONDS = 1.0


def hold_records(
    broker: BrokerProcess, topic: str, partitions: int, records: int
) -> tuple[int, int]:
    """Fill a topic, and fetch so many records of each partition in a group of the same name.

    Returns the bytes by which resident memory has grown: once all are held, and once every other
    one is released again.
    """
    client = Principal(broker.port)
    try:
        _fill(client, topic, partitions, records)
        holder = _Holder(client, topic, partitions)
        holder.join()
        # Code, buffers and pages of logs are not what is asked for: a first round pays for them.
        holder.fetch(records=1)
        before = broker.resident_bytes()
        deadline = time.monotonic() + GROUP_SECONDS
        while holder.held < partitions * records:
            assert time.monotonic() < deadline, f"{holder.held} records are held"
            holder.fetch(records)
        time.sleep(SETTLED_SECONDS)
        fetched = broker.resident_bytes() - before
        holder.release_every_other_one()
        time.sleep(SETTLED_SECONDS)
        return fetched, broker.resident_bytes() - before
    finally:
        client.close()


class _Holder:
    """One member, its session, and what it holds."""

    def __init__(self, client: Principal, topic: str, partitions: int) -> None:
        self._client = client
        self._topic = topic
        self._partitions = range(partitions)
        wanted = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)])
        self._topic_id: UUID = client.ask(wanted, 12).topics[0].topic_id
        self._epoch = 0
        self._ranges: dict[int, list[tuple[int, int]]] = {each: [] for each in self._partitions}

    @property
    def held(self) -> int:
        """Return the number of records held."""
        ranges = [each for some in self._ranges.values() for each in some]
        return sum(last - first + 1 for first, last in ranges)

    def join(self) -> None:
        """Be a member until the group has state of all partitions."""
        self._client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[self._topic]), 4)
        deadline = time.monotonic() + GROUP_SECONDS
        epoch, owned = 0, 0
        while owned < len(self._partitions):
            assert time.monotonic() < deadline, f"{owned} partitions were assigned"
            answer = self._client.ask(
                ShareGroupHeartbeatRequest(
                    group_id=self._topic,
                    member_id=MEMBER,
                    member_epoch=epoch,
                    subscribed_topic_names=[self._topic] if epoch == 0 else None,
                ),
                1,
            )
            if not answer.error_code:
                epoch = answer.member_epoch
                if answer.assignment is not None:
                    topics = answer.assignment.topic_partitions
                    owned = sum(len(each.partitions) for each in topics)
            time.sleep(POLL_SECONDS)

    def fetch(self, records: int) -> None:
        """Take some records of each partition."""
        kind = ShareFetchRequest.Topic
        parts = [
            kind.Partition(partition_index=each, acknowledgement_batches=[])
            for each in self._partitions
        ]
        answer = self._ask(
            ShareFetchRequest(
                group_id=self._topic,
                member_id=MEMBER,
                share_session_epoch=self._epoch,
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=1 << 26,
                max_records=records,
                batch_size=records,
                topics=[kind(topic_id=self._topic_id, partitions=parts if not self._epoch else [])],
                forgotten_topics_data=[],
            )
        )
        for part in (part for topic in answer.responses for part in topic.partitions):
            acquired = [(one.first_offset, one.last_offset) for one in part.acquired_records]
            self._ranges[part.partition_index] += acquired

    def release_every_other_one(self) -> None:
        """Say of the first, the third and so on that somebody else may have them."""
        kind = ShareAcknowledgeRequest.Topic
        parts = [
            kind.Partition(
                partition_index=each,
                acknowledgement_batches=[
                    kind.Partition.AcknowledgementBatch(
                        first_offset=offset, last_offset=offset, acknowledge_types=[RELEASE]
                    )
                    for first, last in ranges
                    for offset in range(first + first % 2, last + 1, 2)
                ],
            )
            for each, ranges in self._ranges.items()
        ]
        answer = self._ask(
            ShareAcknowledgeRequest(
                group_id=self._topic,
                member_id=MEMBER,
                share_session_epoch=self._epoch,
                topics=[kind(topic_id=self._topic_id, partitions=parts)],
            )
        )
        codes = {part.error_code for topic in answer.responses for part in topic.partitions}
        assert codes == {0}, answer

    def _ask(self, request: Any) -> Any:
        answer = self._client.ask(request, 2)
        assert not answer.error_code, answer
        self._epoch += 1
        return answer


def _fill(client: Principal, topic: str, partitions: int, records: int) -> None:
    """Records of ten bytes, in batches as producers make them."""
    batch = bytes(build_batch([NewRecord(NOW_MS, b"k", b"v" * 9)] * BATCH_RECORDS))
    kind = ProduceRequest.TopicData
    for _ in range(-(-records // BATCH_RECORDS)):
        data = [kind.PartitionData(index=each, records=batch) for each in range(partitions)]
        request = ProduceRequest(
            acks=1, timeout_ms=30_000, topic_data=[kind(name=topic, partition_data=data)]
        )
        answer = client.ask(request, 9)
        parts = [part for each in answer.responses for part in each.partition_responses]
        assert not any(part.error_code for part in parts), answer
