"""Cost of messages: microseconds of processor time to read, build and write one.

    python -m tests.benchmarks.message_codecs [--smoke]

Messages are read from a writable memoryview, as a connection has it, and written to parts, as the
dispatcher does. Each number is the best of several rounds, as what disturbs a round can only make
it slower. The second column is the number of partitions in the message.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from protocol.headers import parse_request_header, response_front_packer
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.group_membership import HeartbeatRequest, HeartbeatResponse
from protocol.messages.metadata import MetadataResponse
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.benchmarks.measurement.timing import best_microseconds, is_smoke_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from protocol.schema import Message

Work = tuple[str, int, "Callable[[], object]"]

PARTITIONS = (1, 64)
TOPIC = "benchmark-topic"
TOPIC_ID = UUID(int=12345)
RECORDS = memoryview(bytes(16_000))


@dataclass(frozen=True, slots=True)
class Row:
    """One measured thing."""

    name: str
    partitions: int
    microseconds: float

    def text(self) -> str:
        """A line of the table."""
        return f"{self.name:36} {self.partitions:>10} {self.microseconds:>9.2f}"


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    """Measure, print and return every row."""
    is_smoke = is_smoke_run("What messages cost.", arguments)
    rows = []
    print(f"{'':36} {'partitions':>10} {'us':>9}")
    for name, partitions, work in _measured():
        work()
        rows.append(Row(name, partitions, 0.0 if is_smoke else best_microseconds(work)))
        print(rows[-1].text())
    return rows


def _measured() -> Iterator[Work]:
    frame = memoryview(b"\0\0\0\x09\0\0\0\x4d\0\x0aproducer-1\0" + bytes(100))
    yield "request header v2", 0, lambda: parse_request_header(frame)
    pack_front = response_front_packer(0, 9)
    yield "response header v1", 0, lambda: pack_front(9, 77)
    yield _reading(4, _heartbeat(), 0)
    yield _writing(4, HeartbeatResponse(throttle_time_ms=0, error_code=0), 0)
    for partitions in PARTITIONS:
        yield from _hot_path(partitions)
        yield _reading(8, _offset_commit(partitions), partitions)
        yield _writing(12, _metadata(partitions), partitions)


def _hot_path(partitions: int) -> Iterator[Work]:
    for version in (7, 9, 13):
        yield _reading(version, _produce(partitions), partitions)
    build = partial(_produce_response, partitions)
    yield "build ProduceResponse", partitions, build
    for version in (9, 13):
        yield _writing(version, build(), partitions)
    for version in (11, 12, 17):
        yield _reading(version, _fetch(partitions), partitions)
    build_fetched = partial(_fetch_response, partitions)
    yield "build FetchResponse", partitions, build_fetched
    for version in (11, 17):
        yield _writing(version, build_fetched(), partitions)


def _reading(version: int, message: Message, partitions: int) -> Work:
    frame = memoryview(bytearray(message.encode(version)))
    cls = type(message)
    return f"read {cls.__name__} v{version}", partitions, lambda: cls.decode(version, frame)


def _writing(version: int, message: Message, partitions: int) -> Work:
    name = f"write {type(message).__name__} v{version}"
    return name, partitions, lambda: message.encode_parts(version)


def _heartbeat() -> HeartbeatRequest:
    member = "consumer-1-a1b2c3d4-0000-4000-8000-000000000000"
    return HeartbeatRequest(group_id="benchmark", generation_id=3, member_id=member)


def _produce(partitions: int) -> ProduceRequest:
    batch = ProduceRequest.TopicData.PartitionData
    data = [batch(index=index, records=RECORDS) for index in range(partitions)]
    topic = ProduceRequest.TopicData(name=TOPIC, topic_id=TOPIC_ID, partition_data=data)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def _produce_response(partitions: int) -> ProduceResponse:
    outcome = ProduceResponse.Response.PartitionResponse
    outcomes = [
        outcome(
            index=index,
            error_code=0,
            base_offset=1000,
            log_append_time_ms=-1,
            log_start_offset=0,
        )
        for index in range(partitions)
    ]
    topic = ProduceResponse.Response(name=TOPIC, topic_id=TOPIC_ID, partition_responses=outcomes)
    return ProduceResponse(responses=[topic])


def _fetch(partitions: int) -> FetchRequest:
    wanted = FetchRequest.Topic.Partition
    places = [
        wanted(
            partition=index,
            current_leader_epoch=5,
            fetch_offset=1000,
            log_start_offset=-1,
            partition_max_bytes=1_048_576,
        )
        for index in range(partitions)
    ]
    topic = FetchRequest.Topic(topic=TOPIC, topic_id=TOPIC_ID, partitions=places)
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=52_428_800, topics=[topic])


def _fetch_response(partitions: int) -> FetchResponse:
    found = FetchResponse.Response.Partition
    places = [
        found(
            partition_index=index,
            error_code=0,
            high_watermark=1000,
            last_stable_offset=1000,
            log_start_offset=0,
            aborted_transactions=None,
            records=RECORDS,
        )
        for index in range(partitions)
    ]
    topic = FetchResponse.Response(topic=TOPIC, topic_id=TOPIC_ID, partitions=places)
    return FetchResponse(session_id=1, responses=[topic])


def _offset_commit(partitions: int) -> OffsetCommitRequest:
    position = OffsetCommitRequest.Topic.Partition
    positions = [
        position(
            partition_index=index,
            committed_offset=1000,
            committed_leader_epoch=5,
            committed_metadata="",
        )
        for index in range(partitions)
    ]
    topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=positions)
    return OffsetCommitRequest(group_id="benchmark", member_id="m", topics=[topic])


def _metadata(partitions: int) -> MetadataResponse:
    place = MetadataResponse.Topic.Partition
    places = [
        place(
            error_code=0,
            partition_index=index,
            leader_id=0,
            leader_epoch=5,
            replica_nodes=[0, 1, 2],
            isr_nodes=[0, 1, 2],
        )
        for index in range(partitions)
    ]
    topic = MetadataResponse.Topic(error_code=0, name=TOPIC, topic_id=TOPIC_ID, partitions=places)
    broker = MetadataResponse.Broker(node_id=0, host="localhost", port=9092)
    return MetadataResponse(brokers=[broker], cluster_id="benchmark", topics=[topic])


if __name__ == "__main__":
    main()
