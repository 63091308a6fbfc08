"""A model of the leader of a metadata quorum: its log as a list of batches, and what it answers.

As `KafkaRaftClient` does it (`validateOffsetAndEpoch`), of one partition and without time: what
would wait is answered at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.metadata_log.batches import control_record
from protocol.metadata_log.control_records import LeaderChangeMessage
from protocol.metadata_log.frames import encode_metadata_record
from protocol.metadata_log.log_records import FeatureLevelRecord
from protocol.metadata_log.snapshots import QuorumInForce, SnapshotBatches, SnapshotId
from protocol.records.batch import parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.uuids import METADATA_TOPIC_UUID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.schema import MetadataRecord, Request, Response

NOW_MS = 1_795_229_963_000
CLUSTER = "4L6g3nShT-eMCtK--X86sw"

Partition = FetchResponse.Response.Partition
Part = FetchSnapshotResponse.Topic.Partition


def feature(name: str) -> FeatureLevelRecord:
    """A record that shows in the image."""
    return FeatureLevelRecord(name=name, feature_level=1)


def data_batch(records: Sequence[MetadataRecord], offset: int, epoch: int) -> bytes:
    """A batch of metadata records in their version 0."""
    made = [NewRecord(NOW_MS + offset, None, encode_metadata_record(one, 0)) for one in records]
    return bytes(build_batch(made, base_offset=offset, leader_epoch=epoch))


def leader_change(leader_id: int, offset: int, epoch: int) -> bytes:
    """The first batch of an epoch."""
    message = LeaderChangeMessage(version=0, leader_id=leader_id, voters=[], granting_voters=[])
    record = control_record(message, NOW_MS + offset)
    return bytes(build_batch([record], base_offset=offset, leader_epoch=epoch, is_control=True))


def snapshot_of(
    records: Sequence[MetadataRecord], epoch: int, quorum: QuorumInForce | None = None
) -> bytes:
    """A whole snapshot."""
    batches = SnapshotBatches(epoch, NOW_MS)
    parts = [batches.header(NOW_MS, quorum or QuorumInForce())]
    if records:
        parts.append(batches.data([(one, 0) for one in records]))
    return bytes(b"".join([*parts, batches.footer()]))


@dataclass
class MetadataLeader:
    """A server of the quorum; it leads if `leader_id` is its own id."""

    node_id: int = 1
    epoch: int = 1
    leader_id: int = 1
    start: int = 0
    batches: list[bytes] = field(default_factory=list)
    high_watermark: int = -1
    snapshots: dict[SnapshotId, bytes] = field(default_factory=dict)
    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Addresses of the leaders that it can name."""
    asked: list[Request] = field(default_factory=list)

    @property
    def end(self) -> int:
        """Log end offset."""
        return parse_header(self.batches[-1]).next_offset if self.batches else self.start

    def append(self, *records: MetadataRecord) -> None:
        """Append a data batch, and commit it."""
        self.batches.append(data_batch(records, self.end, self.epoch))
        self.high_watermark = self.end

    def lead(self, epoch: int, *, is_committed: bool = True) -> None:
        """Begin an epoch."""
        self.epoch, self.leader_id = epoch, self.node_id
        self.batches.append(leader_change(self.node_id, self.end, epoch))
        if is_committed:
            self.high_watermark = self.end

    def cut_to(self, offset: int) -> None:
        """Lose what was not committed."""
        self.batches = [one for one in self.batches if parse_header(one).base_offset < offset]

    def compact(self, records: Sequence[MetadataRecord], offset: int | None = None) -> SnapshotId:
        """Replace the log up to an offset, or the whole log, by a snapshot."""
        end = self.end if offset is None else offset
        gone = [one for one in self.batches if parse_header(one).base_offset < end]
        epoch = parse_header(gone[-1]).partition_leader_epoch if gone else self.last_epoch
        snapshot_id = SnapshotId(end, epoch)
        self.snapshots[snapshot_id] = snapshot_of(records, epoch)
        self.start, self.batches = end, self.batches[len(gone) :]
        return snapshot_id

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record."""
        if self.batches:
            return parse_header(self.batches[-1]).partition_leader_epoch
        return max((one.epoch for one in self.snapshots), default=0)

    def answer(self, request: Request) -> Response:
        """Answer as the server does."""
        self.asked.append(request)
        if isinstance(request, FetchSnapshotRequest):
            return self._send_part(request)
        assert isinstance(request, FetchRequest)
        return self._send(request)

    def _refusal(self, epoch: int) -> ErrorCode:
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        is_leader = self.leader_id == self.node_id
        return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _send(self, request: FetchRequest) -> FetchResponse:
        if request.cluster_id != CLUSTER:
            return FetchResponse(error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID), responses=[])
        (topic,) = request.topics
        (wanted,) = topic.partitions
        assert topic.topic_id == METADATA_TOPIC_UUID
        code = self._refusal(wanted.current_leader_epoch)
        partition = Partition(
            partition_index=0,
            error_code=int(code),
            high_watermark=-1 if code else self.high_watermark,
            current_leader=Partition.CurrentLeader(
                leader_id=self.leader_id, leader_epoch=self.epoch
            ),
            diverging_epoch=Partition.DivergingEpoch(),
            snapshot_id=Partition.SnapshotId(),
            records=b"",
        )
        if not code:
            self._fill(partition, wanted.fetch_offset, wanted.last_fetched_epoch)
        return FetchResponse(
            error_code=0,
            responses=[FetchResponse.Response(topic_id=topic.topic_id, partitions=[partition])],
            node_endpoints=[
                FetchResponse.NodeEndpoint(node_id=node_id, host=host, port=port)
                for node_id, (host, port) in self.addresses.items()
                if node_id == self.leader_id
            ],
        )

    def _fill(self, partition: Partition, offset: int, epoch: int) -> None:
        newest = max(self.snapshots, default=None)
        oldest = min(self.snapshots, default=None)
        if newest is not None and oldest is not None:
            is_gone = offset < self.start or (offset == self.start and epoch != oldest.epoch)
            if (offset == 0 and newest) or is_gone or epoch < oldest.epoch:
                partition.snapshot_id = Partition.SnapshotId(
                    end_offset=newest.end_offset, epoch=newest.epoch
                )
                return
        found, end = self._end_of(epoch)
        if not (offset == self.start == 0) and (found != epoch or end < offset):
            partition.diverging_epoch = Partition.DivergingEpoch(epoch=found, end_offset=end)
            return
        headers = map(parse_header, self.batches)
        partition.records = b"".join(
            one
            for one, header in zip(self.batches, headers, strict=True)
            if header.base_offset >= offset
        )

    def _end_of(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch`, and where it ends."""
        found, end = 0, self.start
        for one in self.batches:
            header = parse_header(one)
            if header.partition_leader_epoch <= epoch:
                found, end = header.partition_leader_epoch, header.next_offset
        oldest = min(self.snapshots, default=None)
        if oldest is not None and found == 0:
            found = oldest.epoch
        return found, end

    def _send_part(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        ((wanted,),) = [topic.partitions for topic in request.topics]
        snapshot_id = SnapshotId(wanted.snapshot_id.end_offset, wanted.snapshot_id.epoch)
        code = self._refusal(wanted.current_leader_epoch)
        data = self.snapshots.get(snapshot_id, b"")
        if not code and not data:
            code = ErrorCode.SNAPSHOT_NOT_FOUND
        part = Part(
            index=0,
            error_code=int(code),
            snapshot_id=Part.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
            current_leader=Part.LeaderIdAndEpoch(leader_id=self.leader_id, leader_epoch=self.epoch),
            size=len(data),
            position=wanted.position,
            unaligned_records=(
                b"" if code else data[wanted.position : wanted.position + request.max_bytes]
            ),
        )
        return FetchSnapshotResponse(
            throttle_time_ms=0,
            error_code=0,
            topics=[FetchSnapshotResponse.Topic(name="__cluster_metadata", partitions=[part])],
            node_endpoints=[],
        )
